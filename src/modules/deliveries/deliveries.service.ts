import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Config } from '../../config/config.js';
import { type DeliveryRow, DeliveryStore } from '../../database/delivery-store.js';
import { isTerminal } from '../../domain/closed-lists.js';
import { letterId, type LetterResolution } from '../../domain/letters.js';
import { pause } from '../../pause.js';
import { Dispatcher } from '../../temporal/dispatcher.js';
import type { Access } from '../../http/access/access.js';
import { type ActionBody, toDelivery } from '../../http/delivery.dto.js';
import { listScope, toPageRequest } from '../../http/page.dto.js';
import { Problem, notFound } from '../../http/problems/problem.js';
import { configToken } from '../../http/tokens.js';
import { WorkflowLinks } from '../../http/workflow-links.js';
import {
  type AttemptQuery,
  type DeliveryQuery,
  toAttempt,
  toDeliveryFilter,
  type WaitQuery,
} from './deliveries.dto.js';
import { toTimeline } from './timeline.js';

const pollMs = 150;

@Injectable()
export class DeliveriesService implements OnModuleDestroy {
  private readonly stopping = new AbortController();

  private readonly workflows: WorkflowLinks;

  constructor(
    private readonly deliveries: DeliveryStore,
    private readonly dispatcher: Dispatcher,
    @Inject(configToken) config: Config,
  ) {
    this.workflows = new WorkflowLinks(config.temporal);
  }

  async list(tenantId: string, query: DeliveryQuery) {
    const filter = toDeliveryFilter(query);
    const request = toPageRequest(query, { scope: listScope('deliveries', tenantId, filter) });
    const page = await this.deliveries.list(tenantId, filter, request);
    return {
      data: page.rows.map((row) => this.toDelivery(row)),
      next_cursor: page.nextCursor,
      prev_cursor: page.prevCursor,
    };
  }

  /** Those who wait get their answer at once: a stopping process stays for nobody. */
  onModuleDestroy(): void {
    this.stopping.abort();
  }

  /** One delivery; with `wait`, once it is closed or the time is over. */
  async get(tenantId: string, id: string, { wait = 0 }: WaitQuery) {
    const deadline = Date.now() + wait;
    for (;;) {
      const row = await this.find(tenantId, id);
      if (isTerminal(row.status) || Date.now() >= deadline || this.stopping.signal.aborted) return this.toDelivery(row);
      await pause(Math.min(pollMs, Math.max(1, deadline - Date.now())), this.stopping.signal);
    }
  }

  async attempts(tenantId: string, id: string, query: AttemptQuery) {
    const scope = listScope('attempts', tenantId, { id });
    const page = await this.deliveries.attempts(tenantId, id, toPageRequest(query, { scope, positions: /^\d{1,9}$/ }));
    if (!page) throw notFound('delivery', id);
    return { data: page.rows.map(toAttempt), next_cursor: page.nextCursor, prev_cursor: page.prevCursor };
  }

  async timeline(tenantId: string, id: string) {
    const history = await this.deliveries.history(tenantId, id);
    if (!history) throw notFound('delivery', id);
    return toTimeline(history);
  }

  /** With `letterRound`, only if that dead letter of the delivery is open. */
  async redeliver(access: Access, tenantId: string, id: string, body: ActionBody, letterRound?: number) {
    const by = { keyId: access.keyId, reason: body?.reason ?? null };
    const letter = letterRound === undefined ? {} : { letterRound };
    const result = await this.deliveries.redeliver(tenantId, id, by, letter);
    if (!result && letterRound !== undefined) throw notFound('dead letter', letterId(id, letterRound));
    if (!result) throw notFound('delivery', id);
    if (result.kind === 'letter_resolved') throw letterResolved(result.resolution);
    if (result.kind === 'payload_expired') {
      throw new Problem(
        409,
        'payload_expired',
        "The event's data was purged: nothing is left to send. Publish the event anew, under another id",
      );
    }
    if (result.kind === 'endpoint_unavailable') {
      throw new Problem(
        409,
        'endpoint_unavailable',
        `The delivery's endpoint is ${result.why}: nothing can be sent to it now`,
      );
    }
    const { delivery } = result;
    if (result.kind === 'accepted') {
      this.dispatcher.submit({ kind: 'redeliver', delivery: toStart(delivery), round: delivery.round });
    }
    return { ...this.toDelivery(delivery), already_in_progress: result.kind === 'already_in_progress' };
  }

  async cancel(access: Access, tenantId: string, id: string, body: ActionBody) {
    const result = await this.deliveries.cancel(tenantId, id, { keyId: access.keyId, reason: body?.reason ?? null });
    if (!result) throw notFound('delivery', id);
    if (result.kind === 'already_closed') {
      throw new Problem(
        409,
        'delivery_closed',
        `The delivery is ${result.delivery.status} already: there is nothing to cancel`,
      );
    }
    this.dispatcher.submit({ kind: 'cancel', deliveryId: id, round: result.delivery.round });
    return this.toDelivery(result.delivery);
  }

  private toDelivery(row: DeliveryRow) {
    return toDelivery(row, this.workflows);
  }

  private async find(tenantId: string, id: string): Promise<DeliveryRow> {
    const row = await this.deliveries.get(tenantId, id);
    if (!row) throw notFound('delivery', id);
    return row;
  }
}

function toStart(row: DeliveryRow) {
  return { id: row.id, tenantId: row.tenant_id, endpointId: row.endpoint_id, eventId: row.event_id, type: row.type };
}

/** Once resolved, a letter is past: what is to be done with its delivery is done there. */
export function letterResolved(resolution: LetterResolution): Problem {
  return new Problem(409, 'letter_resolved', `The dead letter is ${resolution} already`);
}
