import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { type DeliveryRow, DeliveryStore } from '../../database/delivery-store.js';
import { isTerminal } from '../../domain/closed-lists.js';
import { pause } from '../../pause.js';
import { Dispatcher } from '../../temporal/dispatcher.js';
import type { Access } from '../../http/access/access.js';
import { toPageRequest } from '../../http/page.dto.js';
import { Problem, notFound } from '../../http/problems/problem.js';
import {
  type ActionBody,
  type AttemptQuery,
  type DeliveryQuery,
  toAttempt,
  toDelivery,
  type WaitQuery,
} from './deliveries.dto.js';

const pollMs = 150;

@Injectable()
export class DeliveriesService implements OnModuleDestroy {
  private readonly stopping = new AbortController();

  constructor(
    private readonly deliveries: DeliveryStore,
    private readonly dispatcher: Dispatcher,
  ) {}

  async list(tenantId: string, query: DeliveryQuery) {
    const { status, endpoint_id: endpointId, event_id: eventId, type } = query;
    const page = await this.deliveries.list(tenantId, { status, endpointId, eventId, type }, toPageRequest(query));
    return { data: page.rows.map(toDelivery), next_cursor: page.nextCursor, prev_cursor: page.prevCursor };
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
      if (isTerminal(row.status) || Date.now() >= deadline || this.stopping.signal.aborted) return toDelivery(row);
      await pause(Math.min(pollMs, Math.max(1, deadline - Date.now())), this.stopping.signal);
    }
  }

  async attempts(tenantId: string, id: string, { limit, cursor }: AttemptQuery) {
    const rows = await this.deliveries.attempts(tenantId, id, { limit: limit + 1, afterNumber: Number(cursor ?? 0) });
    if (!rows) throw notFound('delivery', id);
    const shown = rows.slice(0, limit);
    const next = rows.length > limit ? String(shown.at(-1)?.number) : null;
    return { data: shown.map(toAttempt), next_cursor: next, prev_cursor: null };
  }

  async redeliver(access: Access, tenantId: string, id: string, body: ActionBody) {
    const result = await this.deliveries.redeliver(tenantId, id, { keyId: access.keyId, reason: body?.reason ?? null });
    if (!result) throw notFound('delivery', id);
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
    return { ...toDelivery(delivery), already_in_progress: result.kind === 'already_in_progress' };
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
    return toDelivery(result.delivery);
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
