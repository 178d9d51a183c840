import type { DataSource, EntityManager as Transaction } from 'typeorm';
import {
  isAtItsEnd,
  type ReplayKind,
  type ReplayOrder,
  type ReplayStatus,
  type ReplayWish,
} from '../domain/replays.js';
import { idPrefixes } from '../domain/ids.js';
import { pause } from '../pause.js';
import { newId } from '../security/new-id.js';
import type { Requester } from './delivery-store.js';
import { keyset, type Page, type PageRequest, toPage } from './page.js';
import { mostAtOnce, replayTurnStatement, startItemsStatement } from './replay-batch.js';
import { withContentFilter } from './recover-filter.js';
import { type ReplaySelection, selectionStatement } from './replay-selection.js';

export type { Transaction };

export interface ReplayRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly status: ReplayStatus;
  readonly kind: ReplayKind;
  /** A JSON object: what was asked for. */
  readonly request: string;
  readonly rate_per_second: number;
  readonly requested_by: string | null;
  readonly request_reason: string | null;
  readonly total: number;
  readonly started: number;
  readonly skipped: number;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly finished_at: Date | null;
}

/** What became of a replay's items. */
export interface ReplayOutcomes {
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Started and not at their end yet. */
  readonly inProgress: number;
  readonly skipped: Readonly<Record<string, number>>;
}

export interface NewReplay {
  readonly selection: ReplaySelection;
  /** As it is shown later. */
  readonly request: object;
  readonly ratePerSecond: number;
  readonly order: ReplayOrder;
  readonly by: Requester;
}

export type CreateResult =
  | { readonly kind: 'created'; readonly replay: ReplayRow }
  | { readonly kind: 'too_many'; readonly max: number }
  /** The tenant has no such delivery or letter. */
  | { readonly kind: 'unknown'; readonly what: 'delivery' | 'dead letter'; readonly id: string };

export type ChangeResult =
  | { readonly kind: 'done'; readonly changed: boolean; readonly replay: ReplayRow }
  | { readonly kind: 'closed'; readonly status: ReplayStatus };

/** A delivery that a replay started. */
export interface ReplayedDelivery {
  readonly id: string;
  readonly tenantId: string;
  readonly endpointId: string;
  readonly eventId: string;
  readonly type: string;
  readonly url: string;
}

export interface ReplayStep {
  readonly status: ReplayStatus;
  readonly total: number;
  readonly started: number;
  readonly skipped: number;
  readonly ratePerSecond: number;
  /** Until the rate allows the next one; 0 where nothing is left. */
  readonly waitMs: number;
  /** Their workflows are to be started; those of held ones are started when they are released. */
  readonly deliveries: readonly ReplayedDelivery[];
}

const columns = `id, tenant_id, status, kind, request, rate_per_second, requested_by, request_reason, total, started, skipped,
  created_at, updated_at, finished_at`;

/** A running replay that did nothing for so long is the sweeper's; its workflow moves at least every few seconds. */
const idleGraceMs = 20_000;
/** The same for one whose workflow was to be told just now. */
const toldGraceMs = 3_000;
/** Transactions that published while something was decided about the endpoint are waited for no longer than this. */
const undecidedMs = 2_000;

const newStatus: Readonly<Record<ReplayWish, ReplayStatus>> = {
  pause: 'paused',
  resume: 'running',
  cancel: 'cancelled',
};

/** Replays: a fixed set of deliveries each, sent again at a rate. What is started is decided here, when by the replay's workflow. */
export class ReplayStore {
  constructor(
    private readonly db: DataSource,
    private readonly options: { readonly maxItems: number },
  ) {}

  get maxItems(): number {
    return this.options.maxItems;
  }

  /** Everything of the tenant that a selection names. */
  async count(tenantId: string, selection: ReplaySelection): Promise<number> {
    const filtered = await withContentFilter(this.db.manager, tenantId, selection, this.maxItems);
    const { text, values } = selectionStatement(tenantId, filtered);
    const [row] = await this.db.query<{ count: number }[]>(`select count(*)::int as count from (${text}) s`, [
      ...values,
    ]);
    return row?.count ?? 0;
  }

  /**
   * Events that are being published just now were matched with the endpoints as they were: they become visible within a moment, and
   * belong to what an endpoint missed.
   */
  async untilDecided(): Promise<void> {
    const [now] = await this.db.query<{ xmax: string }[]>(
      'select pg_snapshot_xmax(pg_current_snapshot())::text as xmax',
    );
    for (const deadline = Date.now() + undecidedMs; Date.now() < deadline; await pause(25)) {
      const [row] = await this.db.query<{ decided: boolean }[]>(
        'select pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8 as decided',
        [now?.xmax],
      );
      if (row?.decided) return;
    }
  }

  inTransaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.db.transaction(work);
  }

  /** Fixes the set and writes it down with the replay. Rolled back by the caller unless it was `created`. */
  async create(
    tenantId: string,
    { selection, request, ratePerSecond, order, by }: NewReplay,
    tx: Transaction,
  ): Promise<CreateResult> {
    const id = newId(idPrefixes.replay);
    await tx.query(
      `insert into replays (id, tenant_id, status, kind, request, rate_per_second, requested_by, request_reason, total)
       values ($1, $2, 'running', $3, $4, $5, $6, $7, 0)`,
      [id, tenantId, selection.kind, JSON.stringify(request), ratePerSecond, by.keyId, by.reason],
    );
    const filtered = await withContentFilter(tx, tenantId, selection, this.maxItems);
    const { text, values } = selectionStatement(tenantId, filtered);
    const direction = order === 'oldest' ? 'asc' : 'desc';
    const next = values.length + 1;
    const [added] = await tx.query<{ count: number }[]>(
      `with chosen as materialized (select * from (${text}) s limit $${next}),
       added as (
         insert into replay_items (replay_id, seq, delivery_id, event_id, endpoint_id, round, had_succeeded)
         select $${next + 1}, row_number() over (order by at ${direction}, coalesce(delivery_id, event_id) ${direction}),
                delivery_id, event_id, endpoint_id, round, had_succeeded
           from chosen returning 1)
       select count(*)::int as count from added`,
      [...values, this.maxItems + 1, id],
    );
    const total = added?.count ?? 0;
    if (total > this.maxItems) return { kind: 'too_many', max: this.maxItems };
    const unknown = await this.unknown(tenantId, selection, tx);
    if (unknown) return unknown;
    const [replay] = await tx.query<ReplayRow[]>(
      `with r as (
         update replays set total = $2, status = case when $2 = 0 then 'completed' else 'running' end,
                finished_at = case when $2 = 0 then now() end,
                sweep_after = case when $2 > 0 then now() + interval '${toldGraceMs} ms' end
          where id = $1 returning *)
       select ${columns} from r`,
      [id, total],
    );
    if (!replay) throw new Error(`replay ${id} was not stored`);
    return { kind: 'created', replay };
  }

  async list(tenantId: string, status: ReplayStatus | undefined, page: PageRequest): Promise<Page<ReplayRow>> {
    const keys = keyset('id', page, 3);
    const rows = await this.db.query<ReplayRow[]>(
      `select ${columns} from replays where tenant_id = $1 and ($2::text is null or status = $2) ${keys.where} ${keys.order}`,
      [tenantId, status ?? null, ...keys.values],
    );
    return toPage(rows, page);
  }

  async get(tenantId: string, id: string): Promise<ReplayRow | null> {
    const [row] = await this.db.query<ReplayRow[]>(`select ${columns} from replays where tenant_id = $1 and id = $2`, [
      tenantId,
      id,
    ]);
    return row ?? null;
  }

  /** Counted from the deliveries as they are now. */
  async outcomes(tenantId: string, id: string): Promise<ReplayOutcomes> {
    const rows = await this.db.query<{ state: string; note: string | null; status: string | null; count: number }[]>(
      `select i.state, i.note, case when i.state = 'started' then d.status end as status, count(*)::int as count
         from replays r join replay_items i on i.replay_id = r.id
         left join deliveries d on i.state = 'started' and d.tenant_id = r.tenant_id and d.id = i.delivery_id
        where r.tenant_id = $1 and r.id = $2 and i.state <> 'waiting' group by 1, 2, 3`,
      [tenantId, id],
    );
    const of = (...statuses: string[]): number =>
      rows.reduce((sum, { status, count }) => sum + (status !== null && statuses.includes(status) ? count : 0), 0);
    return {
      succeeded: of('succeeded'),
      failed: of('failed'),
      cancelled: of('cancelled'),
      inProgress: of('pending', 'retrying', 'held'),
      skipped: Object.fromEntries(rows.flatMap(({ note, count }) => (note === null ? [] : [[note, count]]))),
    };
  }

  /** Pauses, resumes or cancels; with a tenant, only one of its own. Null where there is none. Repeating it changes nothing. */
  async change(id: string, wish: ReplayWish, tenantId: string | null): Promise<ChangeResult | null> {
    return this.db.transaction(async (tx): Promise<ChangeResult | null> => {
      const [before] = await tx.query<ReplayRow[]>(
        `select ${columns} from replays where id = $1 and ($2::text is null or tenant_id = $2) for update`,
        [id, tenantId],
      );
      if (!before) return null;
      const status = newStatus[wish];
      if (before.status === status) return { kind: 'done', changed: false, replay: before };
      if (isAtItsEnd(before.status)) return { kind: 'closed', status: before.status };
      const [replay] = await tx.query<ReplayRow[]>(
        `with r as (
           update replays set status = $2, updated_at = now(), finished_at = case when $2 = 'cancelled' then now() end,
                  sweep_after = now() + interval '${toldGraceMs} ms'
            where id = $1 returning *)
         select ${columns} from r`,
        [id, status],
      );
      if (!replay) throw new Error(`replay ${id} was not changed`);
      return { kind: 'done', changed: true, replay };
    });
  }

  /** Starts as many as the rate allows by now. Null when there is no such replay. */
  async startSome(id: string): Promise<ReplayStep | null> {
    return this.db.transaction(async (tx): Promise<ReplayStep | null> => {
      const [turn] = await tx.query<TurnRow[]>(replayTurnStatement, [id]);
      if (!turn) return null;
      const limit = turn.status === 'running' ? Math.min(turn.allowed, turn.waiting, mostAtOnce) : 0;
      const deliveries = limit > 0 ? await this.startItems(tx, turn, limit) : [];
      const [now] = await tx.query<AfterRow[]>(
        `with r as (
           update replays set
             status = case when status = 'running' and started + skipped >= total then 'completed' else status end,
             finished_at = case when status = 'running' and started + skipped >= total then now() else finished_at end,
             sweep_after = case when status = 'running' and started + skipped < total
                           then now() + interval '${idleGraceMs} ms' end
            where id = $1 returning *)
         select status, total, started, skipped, rate_per_second,
                (1000.0 / rate_per_second - extract(epoch from clock_timestamp() - coalesce(paced_until, created_at)) * 1000)::float8 as wait_ms
           from r`,
        [id],
      );
      if (!now) throw new Error(`replay ${id} is not there any more`);
      return {
        status: now.status,
        total: now.total,
        started: now.started,
        skipped: now.skipped,
        ratePerSecond: now.rate_per_second,
        waitMs: now.status === 'running' ? Math.max(0, Math.ceil(now.wait_ms)) : 0,
        deliveries: deliveries.filter(({ status }) => status === 'pending'),
      };
    });
  }

  /** Somebody terminated its workflow by hand: nothing more of it is started. */
  async closeTerminated(id: string): Promise<void> {
    await this.db.query(
      `update replays set status = case when finished_at is null then 'cancelled' else status end, finished_at = coalesce(finished_at, now()),
              sweep_after = null, updated_at = now()
        where id = $1`,
      [id],
    );
  }

  /** Running ones that nobody works on, and those whose workflow doesn't know yet of a change. */
  async toSweep(): Promise<string[]> {
    const rows = await this.db.query<{ id: string }[]>(
      'select id from replays where sweep_after <= now() order by sweep_after limit 100',
    );
    return rows.map(({ id }) => id);
  }

  async lookAgainLater(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await this.db.query(
      `update replays set sweep_after = greatest(sweep_after, now() + interval '${idleGraceMs} ms')
        where id = any($1) and sweep_after is not null`,
      [ids],
    );
  }

  private async startItems(tx: Transaction, turn: TurnRow, limit: number): Promise<StartedRow[]> {
    // Two replays may have missed the same event: whoever comes second sees the delivery that the first one made.
    if (turn.kind === 'recover')
      await tx.query(
        `select pg_advisory_xact_lock(hashtextextended('replay/' || endpoint_id, 0))
           from (select endpoint_id from replay_items where replay_id = $1 and state = 'waiting' order by seq limit 1) i`,
        [turn.id],
      );
    const ids = Array.from({ length: limit }, () => newId(idPrefixes.delivery));
    return await tx.query<StartedRow[]>(startItemsStatement, [
      turn.id,
      turn.tenant_id,
      turn.kind,
      limit,
      ids,
      turn.requested_by,
      turn.request_reason,
    ]);
  }

  /** Ids that name nothing of the tenant's. */
  private async unknown(
    tenantId: string,
    selection: ReplaySelection,
    tx: Transaction,
  ): Promise<Extract<CreateResult, { kind: 'unknown' }> | null> {
    if (selection.kind === 'ids') {
      const [row] = await tx.query<{ id: string }[]>(
        `select n.id from unnest($2::text[]) with ordinality as n (id, ord)
          where not exists (select from deliveries d where d.tenant_id = $1 and d.id = n.id) order by n.ord limit 1`,
        [tenantId, selection.deliveryIds],
      );
      return row ? { kind: 'unknown', what: 'delivery', id: row.id } : null;
    }
    if (selection.kind !== 'letters' || !('letters' in selection)) return null;
    const [row] = await tx.query<{ id: string }[]>(
      `select n.delivery_id || '.' || n.round as id from unnest($2::text[], $3::integer[]) with ordinality as n (delivery_id, round, ord)
        where not exists (select from dead_letters l where l.tenant_id = $1 and l.delivery_id = n.delivery_id and l.round = n.round)
        order by n.ord limit 1`,
      [tenantId, selection.letters.map((one) => one.deliveryId), selection.letters.map((one) => one.round)],
    );
    return row ? { kind: 'unknown', what: 'dead letter', id: row.id } : null;
  }
}

interface TurnRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly status: ReplayStatus;
  readonly kind: ReplayKind;
  readonly requested_by: string | null;
  readonly request_reason: string | null;
  readonly waiting: number;
  readonly allowed: number;
}

interface AfterRow {
  readonly status: ReplayStatus;
  readonly total: number;
  readonly started: number;
  readonly skipped: number;
  readonly rate_per_second: number;
  readonly wait_ms: number;
}

interface StartedRow extends ReplayedDelivery {
  readonly status: 'pending' | 'held';
}
