import type { DataSource } from 'typeorm';
import type { DeliveryReason, DeliveryStatus } from '../domain/closed-lists.js';

/** A place in the order of events. The parts are numbers as text: they may be larger than a double holds exactly. */
export interface FeedPosition {
  readonly epoch: string;
  readonly xid: string;
  readonly seq: string;
}

/** The rows after a position, or those before it. */
export interface FeedCursor extends FeedPosition {
  readonly direction: 'next' | 'prev';
}

export interface FeedRequest {
  readonly tenantId: string;
  readonly cursor: FeedCursor | null;
  readonly limit: number;
  readonly type: string | null;
  /** Only types that this endpoint subscribes to, each with the endpoint's delivery. */
  readonly endpointId: string | null;
  /** With events about Posthorn itself. */
  readonly operational: boolean;
}

export interface FeedDelivery {
  readonly id: string;
  readonly status: DeliveryStatus;
  readonly reason: DeliveryReason;
  readonly attempt_count: number;
  readonly last_status_code: number | null;
}

export interface FeedRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly type: string;
  readonly source: string | null;
  readonly subject: string | null;
  readonly api_version: string | null;
  readonly created_at: Date;
  readonly accepted_at: Date;
  readonly payload_purged_at: Date | null;
  readonly delivery: FeedDelivery | null;
}

export interface FeedPage {
  readonly rows: readonly FeedRow[];
  /** Null only where nothing was looked at. */
  readonly next: FeedCursor | null;
  readonly prev: FeedCursor | null;
}

export interface EventRow extends Omit<FeedRow, 'delivery'> {
  /** Byte for byte as published; null once purged. */
  readonly data: string | null;
  readonly deliveries: readonly (FeedDelivery & { readonly endpoint_id: string })[];
}

/** A filter may choose few events of many: so many are looked at in one request, and the cursor goes on from there. */
const mostLookedAt = 5_000;

/** Name of the row that says which epoch new events get; {@link prepareFeed} keeps the column's default the same. */
const epochState = 'event_epoch';
const clusterState = 'event_cluster';
const currentEpoch = `coalesce((select value::integer from engine_state where name = '${epochState}'), 0)`;

/**
 * Transactions that began before this snapshot may still commit events; those with lower ids are decided. Rows from there on
 * are not shown yet, so that nobody who follows the order can be overtaken by a late one.
 */
const horizon = `pg_snapshot_xmin(pg_current_snapshot())`;

const eventColumns = `v.id, v.tenant_id, v.type, v.source, v.subject, v.api_version, v.created_at, v.accepted_at, v.payload_purged_at`;
/** As {@link eventTypeSubject} writes it, of `v.type`. */
export const typeSubject = `(length(v.type) - length(replace(v.type, '.', '')) + 1) || ':' || v.type`;

/** Events in the order in which they can be followed: (epoch, xid, seq). */
export class EventFeedStore {
  constructor(private readonly db: DataSource) {}

  /** The filters of an endpoint of the tenant; null when there is none. */
  async endpointFilters(tenantId: string, endpointId: string): Promise<readonly string[] | null> {
    const [row] = await this.db.query<{ event_likes: string[] }[]>(
      'select event_likes from endpoints where tenant_id = $1 and id = $2 and deleted_at is null',
      [tenantId, endpointId],
    );
    return row?.event_likes ?? null;
  }

  /**
   * The position of an event; null when the tenant has no such event. An event that isn't shown yet stands at the horizon:
   * one that commits later may come before it, and must not be skipped. Then the event itself is shown once more.
   */
  async positionOf(tenantId: string, eventId: string): Promise<FeedPosition | null> {
    const [row] = await this.db.query<FeedPosition[]>(
      `select epoch::text, case when hidden then ${horizon} else xid end::text as xid, case when hidden then 0 else seq end::text as seq
         from (select epoch, xid, seq, epoch >= ${currentEpoch} and xid >= ${horizon} as hidden
                 from events where tenant_id = $1 and id = $2) v`,
      [tenantId, eventId],
    );
    return row ?? null;
  }

  async page(request: FeedRequest, filters: readonly string[] | null): Promise<FeedPage> {
    const { tenantId, cursor, limit, type, endpointId, operational } = request;
    const back = cursor?.direction === 'prev';
    const order = back ? 'desc' : 'asc';
    const from: FeedPosition = cursor ?? { epoch: '-1', xid: '0', seq: '0' };
    const values: unknown[] = [tenantId, from.epoch, from.xid, from.seq, filters, operational];
    const byType = type === null ? '' : `and v.type = $${values.push(type)}`;
    const delivery =
      endpointId === null
        ? 'null::json as delivery'
        : `(select json_build_object('id', d.id, 'status', d.status, 'reason', d.reason, 'attempt_count', d.attempt_count,
                                     'last_status_code', d.last_status_code)
              from deliveries d where d.tenant_id = v.tenant_id and d.event_id = v.id and d.endpoint_id = $${values.push(endpointId)}
             order by d.id desc limit 1) as delivery`;
    const found = await this.db.query<(FeedRow & FeedPosition & { readonly chosen: boolean })[]>(
      `with looked as materialized (
         select v.*, (not v.operational or $6::boolean) and ($5::text[] is null or ${typeSubject} like any ($5)) as chosen
           from (select ${eventColumns}, v.operational, v.epoch, v.xid, v.seq from events v
                  where v.tenant_id = $1 and (v.epoch, v.xid, v.seq) ${back ? '<' : '>'} ($2::integer, $3::xid8, $4::bigint) ${byType}
                    and (v.epoch < ${currentEpoch} or v.xid < ${horizon})
                  order by v.epoch ${order}, v.xid ${order}, v.seq ${order} limit ${mostLookedAt}) v
       ), chosen as (
         select * from looked where chosen order by epoch ${order}, xid ${order}, seq ${order} limit ${limit + 1}
       ), furthest as (
         select * from looked order by epoch ${back ? 'asc' : 'desc'}, xid ${back ? 'asc' : 'desc'}, seq ${back ? 'asc' : 'desc'} limit 1
       )
       select ${eventColumns}, v.epoch::text, v.xid::text, v.seq::text, chosen, ${delivery}
         from (select * from chosen union all select * from furthest f where not f.chosen) v
        order by v.epoch ${order}, v.xid ${order}, v.seq ${order}`,
      values,
    );
    return toFeedPage(found, request);
  }

  /** One event with its payload and what became of it; null when the tenant has no such event. */
  async get(tenantId: string, id: string): Promise<EventRow | null> {
    const [row] = await this.db.query<EventRow[]>(
      `select ${eventColumns}, v.data,
              coalesce((select json_agg(json_build_object('id', d.id, 'endpoint_id', d.endpoint_id, 'status', d.status, 'reason', d.reason,
                                        'attempt_count', d.attempt_count, 'last_status_code', d.last_status_code) order by d.id)
                          from deliveries d where d.tenant_id = v.tenant_id and d.event_id = v.id), '[]') as deliveries
         from events v where v.tenant_id = $1 and v.id = $2`,
      [tenantId, id],
    );
    return row ?? null;
  }

  /** How long ago the oldest event was accepted that is not shown yet; 0 when all are. */
  async lagMs(): Promise<number> {
    const [row] = await this.db.query<{ lag: number | null }[]>(
      `select (extract(epoch from clock_timestamp() - min(accepted_at)) * 1000)::float8 as lag
         from (select accepted_at, epoch, xid from events where payload_purged_at is null
                order by accepted_at desc, seq desc limit ${mostLookedAt}) newest
        where epoch >= ${currentEpoch} and xid >= ${horizon}`,
    );
    return Math.max(0, row?.lag ?? 0);
  }
}

/** Makes a page of what was found: up to `limit + 1` chosen rows, and the last row that was looked at. */
function toFeedPage(
  found: readonly (FeedRow & FeedPosition & { readonly chosen: boolean })[],
  { cursor, limit }: FeedRequest,
): FeedPage {
  const back = cursor?.direction === 'prev';
  const chosen = found.filter((row) => row.chosen);
  const isCut = chosen.length > limit;
  const rows = chosen.slice(0, limit);
  // Where the page isn't full, all up to the last row that was looked at is dealt with.
  const furthest = isCut ? rows.at(-1) : found.at(-1);
  const nearest = rows[0] ?? found[0];
  if (back) rows.reverse();
  const [first, last] = back ? [furthest, nearest] : [nearest, furthest];
  const hasPrev = back ? first !== undefined : cursor !== null && first !== undefined;
  return {
    rows,
    next: last ? { direction: 'next', ...positionOf(last) } : null,
    prev: hasPrev && first ? { direction: 'prev', ...positionOf(first) } : null,
  };
}

const positionOf = ({ epoch, xid, seq }: FeedPosition): FeedPosition => ({ epoch, xid, seq });

/**
 * Begins a new epoch where the database was restored into another cluster: its transaction ids say nothing about those of the
 * events that it holds. To be called before anything is accepted, under a lock that one process holds at a time.
 */
export async function prepareFeed(db: DataSource): Promise<{ readonly epoch: number; readonly raised: boolean }> {
  return db.transaction(async (tx) => {
    const cluster = await clusterName(tx);
    const [now] = await tx.query<{ epoch: number; known: string | null; ahead: boolean }[]>(
      `with recursive tenants as (
         (select tenant_id from events order by tenant_id limit 1)
         union all
         select (select e.tenant_id from events e where e.tenant_id > t.tenant_id order by e.tenant_id limit 1)
           from tenants t where t.tenant_id is not null)
       select ${currentEpoch} as epoch, (select value from engine_state where name = '${clusterState}') as known,
              exists (select from tenants t, lateral (
                        select epoch, xid from events e where e.tenant_id = t.tenant_id order by epoch desc, xid desc, seq desc limit 1) newest
                       where newest.epoch > ${currentEpoch}
                          or (newest.epoch = ${currentEpoch} and newest.xid >= pg_snapshot_xmax(pg_current_snapshot()))) as ahead`,
    );
    if (!now) throw new Error('the state of the event feed could not be read');
    const moved = now.known !== null && cluster !== null && now.known !== cluster;
    if (cluster !== null && now.known !== cluster) await writeState(tx, clusterState, cluster);
    if (!moved && !now.ahead) return { epoch: now.epoch, raised: false };
    const [row] = await tx.query<{ epoch: number }[]>(
      `select greatest(${currentEpoch}, coalesce((select max(epoch) from events), 0)) + 1 as epoch`,
    );
    const epoch = Number(row?.epoch);
    // A default costs an insert nothing, and can't be forgotten by one.
    await tx.query(`alter table events alter column epoch set default ${epoch}`);
    await writeState(tx, epochState, String(epoch));
    return { epoch, raised: true };
  });
}

interface Queries {
  query<T>(sql: string, values?: unknown[]): Promise<T>;
}

/** Which cluster this is, and which of its histories: a restore to an earlier time begins a new timeline. Null where we may not look. */
async function clusterName(tx: Queries): Promise<string | null> {
  const [may] = await tx.query<{ look: boolean }[]>(
    `select has_function_privilege('pg_control_system()', 'execute') and has_function_privilege('pg_control_checkpoint()', 'execute') as look`,
  );
  if (!may?.look) return null;
  const [row] = await tx.query<{ name: string }[]>(
    `select s.system_identifier || '/' || c.timeline_id as name from pg_control_system() s, pg_control_checkpoint() c`,
  );
  return row?.name ?? null;
}

async function writeState(tx: Queries, name: string, value: string): Promise<void> {
  await tx.query(
    `insert into engine_state (name, value) values ($1, $2)
     on conflict (name) do update set value = excluded.value, updated_at = now()`,
    [name, value],
  );
}
