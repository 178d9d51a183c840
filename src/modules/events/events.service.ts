import { Inject, Injectable } from '@nestjs/common';
import type { Config } from '../../config/config.js';
import { EventStore, type NewEvent, type PublishResult, type StoredAnswer } from '../../database/event-store.js';
import { idPrefixes } from '../../domain/ids.js';
import { newId } from '../../security/new-id.js';
import { FirstAttempts } from '../../express/first-attempts.js';
import { type Access, tenantOf } from '../../http/access/access.js';
import { idempotencyConflict, toIdempotencyKey } from '../../http/idempotency.js';
import { Problem } from '../../http/problems/problem.js';
import { toProblem } from '../../http/problems/to-problem.js';
import { Metrics } from '../../telemetry/metrics.js';
import { Tracing } from '../../telemetry/tracing.js';
import { configToken } from '../../http/tokens.js';
import { EventAdmission } from './event-admission.js';
import { explainMatches } from './explain-match.js';
import { type EventProblem, type EventResult, type PublishedEvent, readEvent, readEventBatch } from './event-body.js';
import type { PublishQuery } from './events.dto.js';

/** An answer whose bytes are fixed: a repeated request gets the very same ones. */
export interface FixedAnswer extends StoredAnswer {
  readonly replayed: boolean;
}

interface Outcome {
  readonly answer: object;
  readonly results: readonly PublishResult[];
}

@Injectable()
export class EventsService {
  constructor(
    private readonly events: EventStore,
    private readonly firstAttempts: FirstAttempts,
    private readonly admission: EventAdmission,
    private readonly metrics: Metrics,
    private readonly tracing: Tracing,
    @Inject(configToken) private readonly config: Config,
  ) {}

  publish(
    access: Access,
    body: Buffer,
    query: PublishQuery,
    idempotencyKey: string | undefined,
    traceparent?: string,
  ): Promise<FixedAnswer> {
    return this.tracing.publish(traceparent, (mine) => this.publishOne(access, body, query, idempotencyKey, mine));
  }

  private async publishOne(
    access: Access,
    body: Buffer,
    query: PublishQuery,
    idempotencyKey: string | undefined,
    traceparent: string | null,
  ): Promise<FixedAnswer> {
    const read = readEvent(body);
    if (!read.ok) throw eventProblem(read);
    const tenantId = tenantOf(access, read.event.tenantId);
    const [event] = await this.admission.admit([toNewEvent(read.event, tenantId, traceparent)]);
    if (!event) throw new Error('the event was not judged');
    if (query.dry_run) return this.dryRun(event);
    return this.store(tenantId, body, idempotencyKey, async (publish) => {
      // Only now: a repeated request gets its first answer, whatever was registered since.
      if (event instanceof Problem) throw event;
      const results = await publish([event]);
      const [result] = results;
      if (!result) throw new Error('the event got no result');
      return { answer: eventAnswer(result), results };
    });
  }

  private async dryRun(event: NewEvent | Problem): Promise<FixedAnswer> {
    if (event instanceof Problem) throw event;
    const { tenantId, type, apiVersion, data } = event;
    const matches = await this.events.matches(tenantId, type, data);
    const wantedBy = new Set(matches.map(({ endpointId }) => endpointId));
    const { rules, others } = explainMatches(await this.events.endpointsToAsk(tenantId), wantedBy, event);
    const endpoints = matches.map(({ endpointId, url, status }) => ({
      endpoint_id: endpointId,
      url,
      status,
      ...(rules.get(endpointId) ?? { decided_by: 'events', rule: null }),
    }));
    const answer = { dry_run: true, type, api_version: apiVersion, tenant_id: tenantId, endpoints, others };
    return { statusCode: 200, answer: JSON.stringify(answer), replayed: false };
  }

  publishBatch(
    access: Access,
    body: Buffer,
    idempotencyKey: string | undefined,
    traceparent?: string,
  ): Promise<FixedAnswer> {
    return this.tracing.publish(traceparent, (mine) => this.publishMany(access, body, idempotencyKey, mine));
  }

  private async publishMany(
    access: Access,
    body: Buffer,
    idempotencyKey: string | undefined,
    traceparent: string | null,
  ): Promise<FixedAnswer> {
    const { batchLimitEvents: maxEvents, bodyLimitBytes: maxEventBytes } = this.config.http;
    const read = readEventBatch(body, { maxEvents, maxEventBytes });
    if (!read.ok) throw eventProblem(read);
    const items = await this.admission.admit(read.items.map((item) => judgeItem(access, item, traceparent)));
    const valid = items.filter((item): item is NewEvent => !(item instanceof Problem));
    return this.store(tenantOf(access, null), body, idempotencyKey, async (publish) => {
      const results = await publish(valid);
      const rest = [...results];
      const data = items.map((item, index) => itemAnswer(index, item instanceof Problem ? item : rest.shift()));
      const accepted = data.filter(({ status }) => status === 202).length;
      return { answer: { accepted, rejected: data.length - accepted, data }, results };
    });
  }

  /** Stores, once per idempotency key, and sees to the first attempts of what was committed. */
  private async store(
    tenantId: string,
    body: Buffer,
    idempotencyKey: string | undefined,
    work: (publish: (events: readonly NewEvent[]) => Promise<PublishResult[]>) => Promise<Outcome>,
  ): Promise<FixedAnswer> {
    const { leaseHolder } = this.firstAttempts;
    if (idempotencyKey === undefined) {
      const { answer, results } = await work((events) => this.events.publish(events, { leaseHolder }));
      this.dispatch(results);
      return { statusCode: 202, answer: JSON.stringify(answer), replayed: false };
    }
    const key = toIdempotencyKey(tenantId, idempotencyKey, body);
    const result = await this.events.once(key, async (tx) => {
      const { answer, results } = await work((events) => this.events.publish(events, { tx, leaseHolder }));
      const stored: StoredAnswer = { statusCode: 202, answer: JSON.stringify(answer) };
      return { value: { results, stored }, stored };
    });
    switch (result.kind) {
      case 'first':
        this.dispatch(result.value.results);
        return { ...result.value.stored, replayed: false };
      case 'replayed':
        return { ...result.stored, replayed: true };
      case 'conflict':
        throw idempotencyConflict();
    }
  }

  private dispatch(results: readonly PublishResult[]): void {
    for (const result of results) {
      if (result.kind !== 'accepted') continue;
      this.metrics.eventAccepted(result.deliveries.map(({ status }) => status));
      for (const delivery of result.deliveries) if (delivery.status === 'pending') this.firstAttempts.begin(delivery);
    }
  }
}

function judgeItem(access: Access, item: EventResult, traceparent: string | null): NewEvent | Problem {
  if (!item.ok) return eventProblem(item);
  try {
    return toNewEvent(item.event, tenantOf(access, item.event.tenantId), traceparent);
  } catch (error) {
    const problem = toProblem(error);
    if (problem) return problem;
    throw error;
  }
}

function toNewEvent(event: PublishedEvent, tenantId: string, traceparent: string | null): NewEvent {
  return { ...event, id: event.id ?? newId(idPrefixes.event), tenantId, traceparent };
}

function eventProblem({ status, code, field, detail }: EventProblem): Problem {
  return new Problem(status, code, detail, { field });
}

function eventAnswer(result: PublishResult): object {
  if (result.kind === 'id_conflict') {
    throw new Problem(
      409,
      'event_id_conflict',
      `Another event has the id '${result.id}': an event never changes, so give this one its own id`,
      {
        field: 'id',
      },
    );
  }
  const { event, deliveries } = result;
  return {
    id: event.id,
    type: event.type,
    created_at: event.createdAt.toISOString(),
    source: event.source,
    subject: event.subject,
    api_version: event.apiVersion,
    tenant_id: event.tenantId,
    // As the first answer said: what became of them is told by the deliveries themselves.
    deliveries: deliveries.map(({ id, endpointId, status }) => ({ id, endpoint_id: endpointId, status })),
  };
}

interface ItemAnswer {
  readonly index: number;
  readonly status: number;
  readonly event?: object;
  readonly error?: object;
}

function itemAnswer(index: number, item: Problem | PublishResult | undefined): ItemAnswer {
  if (item === undefined) throw new Error('an event of the batch got no result');
  if (item instanceof Problem) return { index, status: item.status, error: item };
  try {
    return { index, status: 202, event: eventAnswer(item) };
  } catch (error) {
    if (error instanceof Problem) return { index, status: error.status, error };
    throw error;
  }
}
