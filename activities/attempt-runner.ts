import type { AttemptInput, AttemptOutcome, RecordAttemptInput, SentAttempt } from './contracts/delivery-activities.js';
import type { ActivityDependencies, AttemptWatch } from './ports.js';
import type { AttemptRecord, LoadedDelivery, RecordResult } from '../src/database/attempt-rows.js';
import type { FreshDelivery } from '../src/database/known-endpoints.js';
import type { OutboundAnswer } from '../src/delivery/delivery-client.js';
import { openEndpoint, type OpenedEndpoint } from '../src/delivery/open-endpoint.js';
import { isUnsent, type OutboundRequest } from '../src/delivery/outbound.js';
import { AttemptConfigError, buildAttemptRequest } from '../src/delivery/attempt-request.js';
import type { ShapedPayload } from '../src/payload/payload-shaper.js';
import { isTerminal } from '../src/domain/closed-lists.js';
import { effectiveSettings } from '../src/domain/endpoint-settings.js';
import { parseRetryAfterMs } from '../src/domain/retry-after.js';
import { maxRetryAfterMs, restStretch, retryWaitMs } from '../src/domain/retry-schedule.js';
import { judgeAnswer } from '../src/domain/verdict.js';
import { probeRestMs } from '../src/domain/pacing.js';
import { pause } from '../src/pause.js';
import { newId } from '../src/security/new-id.js';
import { idPrefixes } from '../src/domain/ids.js';
import { LocalLane } from './local-lane.js';
import { labelsOf, nextAttemptOf, outcomeOfRecord, outcomeOfRow, waitOf } from './attempt-outcomes.js';

/** How long an attempt tries to record its outcome before it hands that to `recordAttempt`. */
const recordPatienceMs = 3_000;
const recordPauseMs = 200;
/** A timer may fire a little early by the database's clock. */
const dueToleranceMs = 25;

/**
 * `local`: in the first workflow task, for quick endpoints only. `ordinary`: an activity of its own. `express`: a first attempt
 * before there is a workflow, for quick endpoints only.
 */
export type Lane = 'local' | 'ordinary' | 'express';

/** One attempt: load, sign, POST, record. Nothing in here is aborted by cancellation: only the request's own deadline ends it. */
export class AttemptRunner {
  /** A second execution of the same attempt joins the one in flight: the server may run a local activity again at any time. */
  private readonly inFlight = new Map<string, Promise<AttemptOutcome>>();

  /** Many attempts in a row go by one endpoint as it was read once. */
  private readonly opened = new WeakMap<LoadedDelivery['endpoint'], OpenedEndpoint>();

  private readonly localLane = new LocalLane();

  private readonly watch: AttemptWatch;

  constructor(private readonly deps: ActivityDependencies) {
    this.watch = deps.watch ?? unwatched;
  }

  /** `fresh`: what is known of a delivery whose first attempt this is. */
  run(input: AttemptInput, lane: Lane, fresh: FreshDelivery | null = null): Promise<AttemptOutcome> {
    const key = `${input.deliveryId}/${input.runId}/${input.sequence}`;
    const running = this.inFlight.get(key);
    if (running) return running;
    const attempt = this.execute(input, lane, fresh)
      .then((outcome) => {
        if (outcome.kind === 'not_sent') this.watch.attemptNotSent(outcome.cause);
        return outcome;
      })
      .finally(() => this.inFlight.delete(key));
    this.inFlight.set(key, attempt);
    return attempt;
  }

  private async execute(input: AttemptInput, lane: Lane, fresh: FreshDelivery | null): Promise<AttemptOutcome> {
    let delivery: LoadedDelivery | null;
    try {
      delivery = await this.loadForAttempt(input, fresh);
    } catch (error) {
      this.deps.log.warn(
        { delivery_id: input.deliveryId, err: error },
        'attempt not sent: the delivery could not be loaded',
      );
      return { kind: 'not_sent', cause: 'load_failed' };
    }
    if (!delivery) return { kind: 'unknown_delivery' };
    if (delivery.recorded) return outcomeOfRecorded(delivery);
    if (isTerminal(delivery.status) || delivery.status === 'held') return outcomeOfRow(delivery);
    if (!input.force && !delivery.wakeRequested && waitOf(delivery) > dueToleranceMs)
      return this.notDue(delivery, input.jitterFactor);
    if (lane === 'express') {
      return delivery.lease === 'ours' && delivery.endpoint.quick
        ? this.send(input, delivery, lane)
        : useOrdinary(delivery);
    }
    if (delivery.lease !== 'none') return { kind: 'not_sent', cause: 'express_attempt_in_flight' };
    if (lane === 'ordinary') return this.send(input, delivery, lane);
    const leave = delivery.endpoint.quick ? this.localLane.enter(delivery.endpointId) : null;
    if (!leave) return useOrdinary(delivery);
    try {
      return await this.send(input, delivery, lane);
    } finally {
      leave();
    }
  }

  private async send(input: AttemptInput, delivery: LoadedDelivery, lane: Lane): Promise<AttemptOutcome> {
    if (delivery.mustAsk && !input.force && !delivery.wakeRequested) {
      const refused = await this.askForTurn(input, delivery);
      if (refused) return refused;
    }
    const payload = await this.shape(delivery);
    if (!payload) return { kind: 'not_sent', cause: 'load_failed' };
    const number = delivery.attemptCount + 1;
    const span = this.watch.startAttempt({
      deliveryId: delivery.id,
      eventId: delivery.eventId,
      endpointId: delivery.endpointId,
      tenantId: delivery.tenantId,
      runId: input.runId,
      number,
      lane,
      traceparent: delivery.event.traceparent ?? null,
    });
    const request = 'problem' in payload ? payload : this.prepare(delivery, payload, number, span.traceparent);
    const answer =
      'problem' in request ? notSent(this.deps.now(), request.problem) : await this.deps.sender.send(request);
    // Nothing was sent: its span ends nowhere, and is never told.
    if (answer.noSlot) return { kind: 'not_sent', cause: 'no_connection_free' };
    if (isUnsent(answer)) {
      this.deps.log.warn({ ...idsOf(delivery), error: answer.errorMessage }, 'attempt not sent: the proxy failed');
      return { kind: 'not_sent', cause: 'proxy_failed' };
    }
    try {
      return await this.recordPatiently(input, delivery, answer, !('problem' in payload));
    } finally {
      span.end(answer);
    }
  }

  /** Null: it may go, now. Else what the row says: it waits for its slot, or is held until it is released. */
  private async askForTurn(input: AttemptInput, delivery: LoadedDelivery): Promise<AttemptOutcome | null> {
    const { timeoutMs } = effectiveSettings(delivery.endpoint, null);
    const { id: deliveryId, endpointId, slot } = delivery;
    try {
      const turn = await this.deps.paces.takeTurn({
        deliveryId,
        endpointId,
        slot,
        isRetry: delivery.roundAttempts > 0,
        timeoutMs,
      });
      if (turn.kind === 'go') {
        await pause(turn.inMs);
        return null;
      }
      const again = await this.deps.attempts.load(input);
      return again ? outcomeOfRow(again) : { kind: 'unknown_delivery' };
    } catch (error) {
      this.deps.log.warn({ ...idsOf(delivery), err: error }, 'attempt not sent: it could not ask for its turn');
      return { kind: 'not_sent', cause: 'load_failed' };
    }
  }

  private async notDue(delivery: LoadedDelivery, jitterFactor: number): Promise<AttemptOutcome> {
    if (delivery.restsForMs <= delivery.dueInMs) return outcomeOfRow(delivery);
    const stretch = restStretch(jitterFactor);
    try {
      await this.deps.attempts.waitForEndpoint(delivery.id, stretch);
    } catch (error) {
      this.deps.log.warn({ ...idsOf(delivery), err: error }, 'the row does not say yet that its endpoint rests');
    }
    return outcomeOfRow({ ...delivery, reason: 'retry_after', restsForMs: delivery.restsForMs * stretch });
  }

  /** Reads the row, and first settles what a start or the endpoint's state changes about it. */
  private async loadForAttempt(
    input: AttemptInput,
    fresh: FreshDelivery | null = null,
  ): Promise<LoadedDelivery | null> {
    const { attempts, waiting } = this.deps;
    const delivery = await attempts.load(input, fresh);
    if (!delivery || delivery.recorded) return delivery;
    if (isTerminal(delivery.status)) {
      const redelivers = input.intent === 'redeliver' || (input.intent === 'reset' && !delivery.runHasAttempts);
      if (!redelivers) return delivery;
      await attempts.openNextRound(delivery.id, delivery.round, 'redelivery_requested');
      return this.loadForAttempt({ ...input, intent: 'resume' });
    }
    if (delivery.endpoint.deleted || delivery.endpoint.status !== 'active') {
      const closed = await waiting.closeOne(delivery.id);
      if (closed?.status === 'failed') await this.deps.announcer.letterAdded(delivery.endpointId);
      return attempts.load(input);
    }
    if (delivery.event.data === null) {
      const closed = await waiting.closeWithoutPayload(delivery.id);
      if (closed) await this.deps.announcer.letterAdded(delivery.endpointId);
      return attempts.load(input);
    }
    return delivery;
  }

  /** What goes out of the event's data. Null: it can't be told now. */
  private async shape(delivery: LoadedDelivery): Promise<ShapedPayload | null> {
    try {
      return (await this.deps.payloads.shape(delivery)) ?? { problem: 'the payload was purged' };
    } catch (error) {
      this.deps.log.warn({ ...idsOf(delivery), err: error }, 'attempt not sent: its payload could not be prepared');
      return null;
    }
  }

  /** A row that can't be sent (an unreadable secret, a bad URL) fails its own attempt, and nothing else. */
  private prepare(
    delivery: LoadedDelivery,
    { data, apiVersion }: Exclude<ShapedPayload, { problem: string }>,
    attemptNumber: number,
    traceparent: string | null,
  ): OutboundRequest | { problem: string } {
    try {
      const { endpointId, endpoint, event } = delivery;
      const opened = this.open(endpointId, endpoint);
      const request = buildAttemptRequest({
        delivery: {
          id: delivery.id,
          eventId: delivery.eventId,
          tenantId: delivery.tenantId,
          type: delivery.type,
          createdAt: event.createdAt.toISOString(),
          apiVersion,
          source: event.source,
          subject: event.subject,
          data,
        },
        endpoint: opened,
        secrets: opened.secrets,
        attemptNumber,
        traceparent,
        nowMs: this.deps.now(),
      });
      const max = endpoint.maxInFlight ?? this.deps.settings.maxInFlight;
      return { ...request, slot: { key: endpointId, max } };
    } catch (error) {
      this.deps.log.error({ ...idsOf(delivery), err: error }, 'attempt can not be built');
      const why = error instanceof AttemptConfigError ? error.message : null;
      return { problem: why ?? 'the request could not be built from the endpoint’s settings' };
    }
  }

  private open(endpointId: string, endpoint: LoadedDelivery['endpoint']): OpenedEndpoint {
    const known = this.opened.get(endpoint);
    if (known) return known;
    const opened = openEndpoint(endpointId, endpoint, this.deps.secrets, this.deps.settings.retryWaitsMs);
    this.opened.set(endpoint, opened);
    return opened;
  }

  private async recordPatiently(
    input: AttemptInput,
    delivery: LoadedDelivery,
    answer: OutboundAnswer,
    blamesEndpoint: boolean,
  ): Promise<AttemptOutcome> {
    const record = { ...this.recordOf(input, delivery, answer), blamesEndpoint };
    const deadline = this.deps.now() + recordPatienceMs;
    for (;;) {
      const left = deadline - this.deps.now();
      try {
        return await within(left, this.record(input, delivery, record));
      } catch (error) {
        this.deps.log.warn({ ...idsOf(delivery), err: error }, 'attempt sent but not recorded yet');
      }
      if (this.deps.now() + recordPauseMs >= deadline) break;
      await pause(recordPauseMs);
    }
    return { kind: 'unrecorded', sent: sentAttempt(record, retryAfterOf(answer, this.deps.now())) };
  }

  /** For `recordAttempt`: the outcome of a request that was sent by somebody who could not record it. Throws while it can't be recorded. */
  async recordSent(input: RecordAttemptInput): Promise<AttemptOutcome> {
    const delivery = await this.deps.attempts.load(input);
    if (!delivery) return { kind: 'unknown_delivery' };
    if (delivery.recorded) return outcomeOfRecorded(delivery);
    const { sent } = input;
    const answer: OutboundAnswer = {
      startedAt: new Date(sent.startedAt),
      durationMs: sent.durationMs,
      statusCode: sent.statusCode,
      errorCode: sent.errorCode,
      errorMessage:
        sent.errorCode === 'outcome_unknown' ? 'the sending process ended before it could record the answer' : null,
      responseHeaders: sent.retryAfterMs === null ? [] : [['retry-after', String(sent.retryAfterMs / 1_000)]],
      responseBody: Buffer.alloc(0),
      responseTruncated: false,
      remoteAddress: sent.remoteAddress,
      resent: sent.resent,
      dialled: true,
    };
    return this.record(input, delivery, {
      ...this.recordOf(input, delivery, answer),
      round: sent.round,
      responseHeaders: [],
    });
  }

  /** For `settleAttempt`: what was recorded of an attempt whose activity died, else `outcome_unknown`, which spends the attempt. */
  async settle(input: AttemptInput): Promise<AttemptOutcome> {
    const running = this.inFlight.get(`${input.deliveryId}/${input.runId}/${input.sequence}`);
    if (running) return running;
    const delivery = await this.deps.attempts.load(input);
    if (!delivery) return { kind: 'unknown_delivery' };
    if (delivery.recorded) return outcomeOfRecorded(delivery);
    if (isTerminal(delivery.status)) return outcomeOfRow(delivery);
    const unknown: SentAttempt = {
      round: delivery.round,
      startedAt: new Date(this.deps.now()).toISOString(),
      durationMs: 0,
      statusCode: null,
      errorCode: 'outcome_unknown',
      retryAfterMs: null,
      remoteAddress: null,
      resent: false,
    };
    return this.recordSent({ ...input, sent: unknown });
  }

  /** One statement, then the consequences that may get lost: the sweeper makes up for them. */
  private async record(input: AttemptInput, delivery: LoadedDelivery, record: AttemptRecord): Promise<AttemptOutcome> {
    const result = await this.deps.attempts.record(record);
    if (!result) {
      // Another process may have taken this attempt's process for dead.
      const replaced = record.errorCode !== 'outcome_unknown' && (await this.deps.attempts.replaceUnknown(record));
      if (replaced && record.outcome === 'delivered') this.watch.deliveryClosed('succeeded', 'delivered');
      const again = await this.deps.attempts.load(input);
      return again ? outcomeOfRecorded(again) : { kind: 'unknown_delivery' };
    }
    this.tell(delivery, record, result);
    if (result.endpointGone) await this.closeWaiting(delivery.endpointId);
    if (result.letter || result.endpointGone) await this.deps.announcer.letterAdded(delivery.endpointId);
    if (result.healthChanged) await this.deps.announcer.endpointChanged(delivery.endpointId);
    return outcomeOfRecord(delivery, result, record.errorCode ?? 'http_status');
  }

  private tell(
    delivery: LoadedDelivery,
    record: AttemptRecord,
    { number, status, reason, letter }: RecordResult,
  ): void {
    const { outcome, statusCode, errorCode, durationMs } = record;
    const fields = {
      ...idsOf(delivery),
      attempt: number,
      outcome,
      status_code: statusCode,
      error_code: errorCode,
      duration_ms: Math.round(durationMs),
    };
    this.deps.log.debug(fields, 'attempt recorded');
    this.watch.attemptRecorded(record);
    if (outcome === 'delivered' && status === 'succeeded') this.watch.deliveryClosed('succeeded', reason);
    if (!letter) return;
    this.deps.log.info({ ...fields, reason }, 'delivery given up: it is a dead letter now');
    this.watch.deliveryClosed('failed', reason);
  }

  private async closeWaiting(endpointId: string): Promise<void> {
    try {
      await this.deps.waiting.closeAllOf(endpointId, (closed) => this.deps.announcer.deliveriesClosed(closed));
    } catch (error) {
      this.deps.log.warn(
        { endpoint_id: endpointId, err: error },
        'waiting deliveries not closed yet: the sweeper will',
      );
    }
  }

  private recordOf(input: AttemptInput, delivery: LoadedDelivery, answer: OutboundAnswer): AttemptRecord {
    const { settings, now } = this.deps;
    const { statusCode, errorCode } = answer;
    const verdict = judgeAnswer({ statusCode, errorCode, hadSucceededBefore: delivery.endpoint.succeededBefore });
    const failed = verdict.kind === 'failed' ? verdict : null;
    const restMs = failed?.honoursRetryAfter ? retryAfterOf(answer, now()) : null;
    const { retryWaitsMs: waitsMs } = effectiveSettings(delivery.endpoint, settings.retryWaitsMs);
    const waitMs = retryWaitMs({
      waitsMs,
      attemptsSpent: delivery.roundAttempts + 1,
      factor: input.jitterFactor,
      retryAfterMs: restMs,
      refusedWaitMs: failed?.refused ? settings.refusedWaitMs : 0,
    });
    return {
      id: newId(idPrefixes.attempt),
      deliveryId: delivery.id,
      runId: input.runId,
      sequence: input.sequence,
      round: delivery.round,
      startedAt: answer.startedAt,
      durationMs: answer.durationMs,
      statusCode,
      // A 2xx whose body never ended is delivered all the same: its code would read like a failure.
      errorCode: failed ? (errorCode ?? 'http_status') : null,
      errorMessage: failed ? answer.errorMessage : null,
      responseHeaders: answer.responseHeaders,
      responseBody: answer.responseBody,
      responseTruncated: answer.responseTruncated,
      remoteAddress: answer.remoteAddress,
      resent: answer.resent,
      outcome: verdict.kind,
      gone: failed?.gone ?? false,
      refused: failed?.refused ?? false,
      waitMs,
      restMs: restMs !== null && restMs > 0 ? Math.min(restMs, maxRetryAfterMs) : null,
      letterExpiryMs: settings.letterExpiryMs,
      probeRestMs: probeRestMs(waitMs),
    };
  }
}

const unwatched: AttemptWatch = {
  startAttempt: ({ traceparent }) => ({ traceparent, end: () => undefined }),
  attemptRecorded: () => undefined,
  attemptNotSent: () => undefined,
  deliveryClosed: () => undefined,
};

function useOrdinary(delivery: LoadedDelivery): AttemptOutcome {
  return {
    kind: 'use_ordinary',
    round: delivery.round,
    next: nextAttemptOf(delivery, delivery.attemptCount + 1),
    labels: labelsOf(delivery),
  };
}

/** What every line about a delivery carries, for a search in the logs. */
function idsOf({ id, eventId, endpointId }: Pick<LoadedDelivery, 'id' | 'eventId' | 'endpointId'>) {
  return { delivery_id: id, event_id: eventId, endpoint_id: endpointId };
}

function retryAfterOf(answer: OutboundAnswer, nowMs: number): number | null {
  const values = answer.responseHeaders
    .filter(([name]) => name.toLowerCase() === 'retry-after')
    .map(([, value]) => value);
  return parseRetryAfterMs(values, nowMs);
}

/** The attempt is in the table: tell what came of it, by the row as it is now. */
function outcomeOfRecorded(delivery: LoadedDelivery): AttemptOutcome {
  const { recorded } = delivery;
  if (!recorded || isTerminal(delivery.status) || delivery.status === 'held') return outcomeOfRow(delivery);
  return {
    kind: 'failed',
    round: delivery.round,
    number: recorded.number,
    reason: delivery.reason,
    statusCode: recorded.statusCode,
    error: recorded.errorCode ?? 'http_status',
    waitMs: waitOf(delivery),
    next: nextAttemptOf(delivery, delivery.attemptCount + 1),
    labels: labelsOf(delivery),
  };
}

function sentAttempt(record: AttemptRecord, retryAfterMs: number | null): SentAttempt {
  return {
    round: record.round,
    startedAt: record.startedAt.toISOString(),
    durationMs: record.durationMs,
    statusCode: record.statusCode,
    errorCode: record.errorCode,
    retryAfterMs,
    remoteAddress: record.remoteAddress,
    resent: record.resent,
  };
}

/** The answer of an attempt that couldn't be built: a failure without a socket. */
function notSent(nowMs: number, problem: string): OutboundAnswer {
  return {
    startedAt: new Date(nowMs),
    durationMs: 0,
    statusCode: null,
    errorCode: 'config_invalid',
    errorMessage: problem,
    responseHeaders: [],
    responseBody: Buffer.alloc(0),
    responseTruncated: false,
    remoteAddress: null,
    resent: false,
    dialled: false,
  };
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer from the database within ${ms} ms`)), Math.max(1, ms));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}
