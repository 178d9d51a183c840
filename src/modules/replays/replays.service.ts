import { Inject, Injectable } from '@nestjs/common';
import type { Config } from '../../config/config.js';
import { EndpointStore } from '../../database/endpoint-store.js';
import { EventStore } from '../../database/event-store.js';
import type { ReplaySelection } from '../../database/replay-selection.js';
import { type ReplayRow, ReplayStore, type Transaction } from '../../database/replay-store.js';
import { parseLetterId } from '../../domain/letters.js';
import type { ReplayOrder, ReplayWish } from '../../domain/replays.js';
import type { Access } from '../../http/access/access.js';
import { idempotencyConflict, toIdempotencyKey } from '../../http/idempotency.js';
import { listScope, toPageRequest } from '../../http/page.dto.js';
import { notFound, Problem } from '../../http/problems/problem.js';
import { configToken } from '../../http/tokens.js';
import { WorkflowLinks } from '../../http/workflow-links.js';
import { TemporalAnnouncer } from '../../temporal/announcer.js';
import {
  type NewLetterReplayBody,
  type NewReplayBody,
  type RecoveryBody,
  type ReplayQuery,
  toReplay,
  toReplayDetail,
} from './replays.dto.js';

/** Who asks for what, beside the selection. */
export interface ReplayRequest {
  readonly access: Access;
  readonly tenantId: string;
  readonly idempotencyKey: string | undefined;
}

interface Settings {
  readonly dry_run?: boolean | null | undefined;
  readonly rate_per_second?: number | null | undefined;
  readonly order?: ReplayOrder | null | undefined;
  readonly reason?: string | null | undefined;
}

export interface ReplayAnswer {
  readonly statusCode: 200 | 202;
  /** JSON. */
  readonly answer: string;
  readonly replayed: boolean;
}

@Injectable()
export class ReplaysService {
  private readonly workflows: WorkflowLinks;

  constructor(
    private readonly replays: ReplayStore,
    private readonly events: EventStore,
    private readonly endpoints: EndpointStore,
    private readonly announcer: TemporalAnnouncer,
    @Inject(configToken) private readonly config: Config,
  ) {
    this.workflows = new WorkflowLinks(config.temporal);
  }

  async replayDeliveries(request: ReplayRequest, body: NewReplayBody): Promise<ReplayAnswer> {
    const { delivery_ids: ids, filter = {} } = body;
    const selection: ReplaySelection = ids
      ? { kind: 'ids', deliveryIds: [...new Set(ids)] }
      : { kind: 'filter', filter: { ...toConditions(filter), status: filter.status } };
    return this.create(request, selection, body, ids ? { delivery_ids: ids.length } : { filter });
  }

  async replayLetters(request: ReplayRequest, body: NewLetterReplayBody): Promise<ReplayAnswer> {
    const { letter_ids: ids, filter = {} } = body;
    const selection: ReplaySelection = ids
      ? { kind: 'letters', letters: ids.flatMap((id) => parseLetterId(id) ?? []) }
      : { kind: 'letters', filter: toConditions(filter) };
    return this.create(request, selection, body, ids ? { letter_ids: ids.length } : { filter });
  }

  async recover(request: ReplayRequest, endpointId: string, body: RecoveryBody): Promise<ReplayAnswer> {
    const endpoint = await this.endpoints.get(request.tenantId, endpointId);
    if (!endpoint) throw notFound('endpoint', endpointId);
    if (body.dry_run !== true && (endpoint.status === 'disabled' || endpoint.status === 'expired')) {
      const remedy = endpoint.status === 'disabled' ? 'enable' : 'renew';
      throw new Problem(
        409,
        'endpoint_unavailable',
        `The endpoint is ${endpoint.status}: ${remedy} it first, with POST …/${remedy}, and recover then`,
      );
    }
    await this.replays.untilDecided();
    const { since } = body;
    return this.create(request, { kind: 'recover', endpointId, since }, body, { endpoint_id: endpointId, since });
  }

  async list(tenantId: string, query: ReplayQuery) {
    const scope = listScope('replays', tenantId, { status: query.status });
    const page = await this.replays.list(tenantId, query.status, toPageRequest(query, { scope }));
    return {
      data: page.rows.map((row) => toReplay(row, this.workflows)),
      next_cursor: page.nextCursor,
      prev_cursor: page.prevCursor,
    };
  }

  async get(tenantId: string, id: string) {
    const row = await this.replays.get(tenantId, id);
    if (!row) throw notFound('replay', id);
    return toReplayDetail(row, await this.replays.outcomes(tenantId, id), this.workflows);
  }

  async change(tenantId: string, id: string, wish: ReplayWish) {
    const result = await this.replays.change(id, wish, tenantId);
    if (!result) throw notFound('replay', id);
    if (result.kind === 'closed')
      throw new Problem(409, 'replay_closed', `The replay is ${result.status} already: start another one`);
    if (result.changed) void this.announcer.replayChanged(id);
    return toReplay(result.replay, this.workflows);
  }

  private async create(
    { access, tenantId, idempotencyKey }: ReplayRequest,
    selection: ReplaySelection,
    settings: Settings,
    request: object,
  ): Promise<ReplayAnswer> {
    if (settings.dry_run === true) {
      const total = await this.replays.count(tenantId, selection);
      const answer = { dry_run: true, total, max_total: this.replays.maxItems };
      return { statusCode: 200, answer: JSON.stringify(answer), replayed: false };
    }
    const replay = {
      selection,
      request,
      ratePerSecond: settings.rate_per_second ?? this.config.replay.ratePerSecond,
      order: settings.order ?? 'oldest',
      by: { keyId: access.keyId, reason: settings.reason ?? null },
    };
    const store = async (tx: Transaction): Promise<ReplayRow> => {
      const result = await this.replays.create(tenantId, replay, tx);
      switch (result.kind) {
        case 'created':
          return result.replay;
        case 'unknown':
          throw notFound(result.what, result.id);
        case 'too_many':
          throw new Problem(
            422,
            'replay_too_large',
            `One replay takes at most ${result.max} deliveries (POSTHORN_REPLAY_MAX_ITEMS), and this would be more: narrow it, such as by type or time`,
          );
      }
    };
    if (idempotencyKey === undefined) {
      const row = await this.replays.inTransaction(store);
      void this.announcer.replayChanged(row.id);
      return { statusCode: 202, answer: JSON.stringify(toReplay(row, this.workflows)), replayed: false };
    }
    const key = toIdempotencyKey(tenantId, idempotencyKey, JSON.stringify([selection, settings]));
    const result = await this.events.once(key, async (tx) => {
      const row = await store(tx);
      const answer = JSON.stringify(toReplay(row, this.workflows));
      return { value: { id: row.id, answer }, stored: { statusCode: 202, answer } };
    });
    switch (result.kind) {
      case 'first':
        void this.announcer.replayChanged(result.value.id);
        return { statusCode: 202, answer: result.value.answer, replayed: false };
      case 'replayed':
        return { statusCode: 202, answer: result.stored.answer, replayed: true };
      case 'conflict':
        throw idempotencyConflict();
    }
  }
}

function toConditions(filter: NonNullable<NewLetterReplayBody['filter']>) {
  return {
    endpointId: filter.endpoint_id,
    eventId: filter.event_id,
    type: filter.type,
    reason: filter.reason,
    httpStatus: filter.http_status,
    createdAfter: filter.created_after,
    createdBefore: filter.created_before,
  };
}
