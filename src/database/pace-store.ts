import type { DataSource } from 'typeorm';
import { sweepGraceMs } from './grace.js';
import { insertLetters } from './letters-sql.js';
import { isRising, ratePerSecond, slotHorizonMs } from './pacing-sql.js';
import { endpointsWithHeld } from './sweep-store.js';

/** A delivery that asks for its turn. */
export interface TurnRequest {
  readonly deliveryId: string;
  readonly endpointId: string;
  /** Retries get a share of the rate limit, so that neither they nor fresh deliveries starve. */
  readonly isRetry: boolean;
  /** 'retry': it waited for its place among the retries and has it. */
  readonly slot: 'taken' | 'retry' | null;
  /** How long the request may take: while an endpoint is asked whether it is back, nobody else asks. */
  readonly timeoutMs: number;
}

/** `go`: after these milliseconds. `wait`: the row says until when. `held`: until it is released. */
export type Turn =
  { readonly kind: 'go'; readonly inMs: number } | { readonly kind: 'wait' } | { readonly kind: 'held' };

/** An endpoint that takes deliveries and has some that wait for their turn. */
export interface WaitingEndpoint {
  readonly id: string;
  readonly pace: 'open' | 'probing' | 'rising';
  readonly probeFree: boolean;
  readonly timeoutMs: number;
  /** Milliseconds since it answers again. */
  readonly risingForMs: number | null;
  /** Released since then. */
  readonly released: number;
  readonly ratePerSecond: number | null;
  /** The next free slot is so far ahead. */
  readonly slotInMs: number;
  readonly restsForMs: number;
}

/** A delivery that may go at its time. */
export interface ReleasedDelivery {
  readonly id: string;
  readonly tenantId: string;
  readonly endpointId: string;
  readonly eventId: string;
  readonly type: string;
  readonly round: number;
  readonly inMs: number;
}

/** How far ahead a turn may be that an attempt waits for in place; longer ones are durable timers. */
const waitInPlaceMs = 250;
/** After the request's own time, until somebody else may ask an endpoint whether it is back. */
const probeMarginMs = 5_000;

/** Who may send to an endpoint, and when: rate limits as reserved slots, one probe at a time, and what is released from waiting. */
export class PaceStore {
  constructor(
    private readonly db: DataSource,
    private readonly options: { readonly retryShare: number; readonly letterExpiryMs: number },
  ) {}

  async takeTurn(request: TurnRequest): Promise<Turn> {
    const [pace] = await this.db.query<PaceRow[]>(paceStatement, [request.endpointId]);
    if (!pace) return { kind: 'go', inMs: 0 };
    if (pace.probing)
      return (await this.takeProbe(request.endpointId, request.timeoutMs))
        ? { kind: 'go', inMs: 0 }
        : this.hold(request);
    if (pace.rising) return this.hold(request);
    if (pace.rate === null) return { kind: 'go', inMs: 0 };
    if (request.isRetry && request.slot === null) {
      const inMs = await this.reserve(
        request.endpointId,
        'next_retry_slot_at',
        1_000 / (pace.rate * this.options.retryShare),
      );
      if (inMs > waitInPlaceMs) return this.defer(request, inMs, 'retry');
    } else if (!request.isRetry && (pace.backlog || pace.slot_in_ms > slotHorizonMs)) {
      return this.hold(request);
    }
    const inMs = await this.reserve(request.endpointId, 'next_slot_at', 1_000 / pace.rate);
    if (inMs > waitInPlaceMs) return this.defer(request, inMs, 'taken');
    return { kind: 'go', inMs: Math.max(0, inMs) };
  }

  /** Endpoints that take deliveries and have some that wait, each with what it takes just now. */
  async waitingEndpoints(): Promise<WaitingEndpoint[]> {
    const rows = await this.db.query<WaitingRow[]>(
      `select e.id, e.pace, (e.probe_after is null or e.probe_after <= now()) as probe_free, coalesce(e.timeout_ms, 30000) as timeout_ms,
              case when e.pace = 'rising' then extract(epoch from now() - e.rising_since)::float8 * 1000 end as rising_for_ms,
              case when p.rising_since = e.rising_since then p.released else 0 end as released,
              ${ratePerSecond} as rate, greatest(0, extract(epoch from p.next_slot_at - now())::float8 * 1000) as slot_in_ms,
              greatest(0, extract(epoch from e.not_before - now())::float8 * 1000) as rests_for_ms
         from (${endpointsWithHeld}) h join endpoints e on e.id = h.endpoint_id
         left join endpoint_paces p on p.endpoint_id = e.id
        where e.status = 'active' and e.deleted_at is null`,
    );
    return rows.map((row) => ({
      id: row.id,
      pace: row.pace,
      probeFree: row.probe_free,
      timeoutMs: row.timeout_ms,
      risingForMs: row.rising_for_ms,
      released: row.released,
      ratePerSecond: row.rate,
      slotInMs: row.slot_in_ms ?? 0,
      restsForMs: row.rests_for_ms ?? 0,
    }));
  }

  /** The one who may ask an endpoint that is down; false while somebody else does, or while it rests. */
  async takeProbe(endpointId: string, timeoutMs: number): Promise<boolean> {
    const rows = await this.db.query<unknown[]>(
      `with e as (
         update endpoints set probe_after = now() + ($2::float8 + ${probeMarginMs}) * interval '1 ms'
          where id = $1 and pace = 'probing' and (probe_after is null or probe_after <= now()) returning 1)
       select 1 from e`,
      [endpointId, timeoutMs],
    );
    return rows.length > 0;
  }

  /**
   * Lets the oldest held deliveries go, `spacingMs` apart; under a rate limit (`spacingMs` is then that of its slots) each gets the
   * next free slot.
   */
  async release(
    endpointId: string,
    count: number,
    spacingMs: number,
    how: 'spread' | 'slots',
  ): Promise<ReleasedDelivery[]> {
    const firstAt =
      how === 'slots'
        ? `(select next_slot_at - $3::float8 * (select count(*) from chosen) * interval '1 ms' from slots)`
        : 'now()';
    const slots =
      how === 'slots'
        ? `slots as (
             insert into endpoint_paces as p (endpoint_id, next_slot_at)
             select $1, now() + $3::float8 * (select count(*) from chosen) * interval '1 ms'
             on conflict (endpoint_id) do update
               set next_slot_at = greatest(p.next_slot_at, now()) + $3::float8 * (select count(*) from chosen) * interval '1 ms'
             returning next_slot_at),`
        : '';
    return await this.db.query<ReleasedDelivery[]>(
      `with chosen as materialized (
         select id, row_number() over (order by id) - 1 as nth from (
           select id from deliveries where endpoint_id = $1 and status = 'held' order by id limit $2 for update skip locked) d
       ), ${slots} released as (
         update deliveries d set
           status = case when d.round_attempts > 0 then 'retrying' else 'pending' end,
           reason = case when d.round_attempts > 0 then 'attempt_failed'
                         else coalesce(d.round_reason, case when d.round > 1 then 'redelivery_requested' else 'published' end) end,
           slot = 'taken', held_since = null, updated_at = now(),
           -- Its workflow may still sleep, where it was never told that the delivery is held.
           wake_requested = d.round_attempts > 0,
           next_attempt_at = ${firstAt} + $3::float8 * c.nth * interval '1 ms',
           sweep_after = ${firstAt} + ($3::float8 * c.nth + ${sweepGraceMs}) * interval '1 ms'
         from chosen c where d.id = c.id and d.status = 'held'
        returning d.*)
       select id, tenant_id as "tenantId", endpoint_id as "endpointId", event_id as "eventId", type, round,
              greatest(0, extract(epoch from next_attempt_at - now()) * 1000)::float8 as "inMs"
         from released order by id`,
      [endpointId, count, spacingMs],
    );
  }

  /** Counts what was released since the endpoint answers again. */
  async countReleased(endpointId: string, count: number): Promise<void> {
    await this.db.query(
      `insert into endpoint_paces as p (endpoint_id, rising_since, released)
       select id, rising_since, $2 from endpoints where id = $1
       on conflict (endpoint_id) do update set
         released = case when p.rising_since = excluded.rising_since then p.released + $2 else $2 end,
         rising_since = excluded.rising_since`,
      [endpointId, count],
    );
  }

  /** The rise is over: the endpoint is as any other. */
  async open(endpointId: string): Promise<void> {
    await this.db.query(
      `update endpoints e set pace = 'open', rising_since = null where e.id = $1 and e.pace = 'rising' and not ${isRising}`,
      [endpointId],
    );
  }

  /** What waited for its turn for too long is given up: it would be news to nobody. Returns the endpoints of the new letters, and how many. */
  async expireQueued(maxAgeMs: number, limit: number): Promise<{ endpointId: string; count: number }[]> {
    return await this.db.query<{ endpointId: string; count: number }[]>(
      `with chosen as materialized (
         select d.id from deliveries d join endpoints e on e.id = d.endpoint_id
          where d.status = 'held' and d.reason = 'rate_limited' and d.held_since < now() - $1::float8 * interval '1 ms'
            -- A paused endpoint takes nothing, however long; its time doesn't count.
            and (e.resumed_at is null or e.resumed_at < now() - $1::float8 * interval '1 ms') and e.status = 'active' and e.deleted_at is null
          order by d.held_since limit $2 for update of d skip locked
       ), d as (
         update deliveries d set status = 'failed', reason = 'queue_age_exceeded', held_since = null, updated_at = now()
           from chosen where d.id = chosen.id returning d.*
       ), l as (${insertLetters('d', '$3::float8')})
       select endpoint_id as "endpointId", count(*)::int as count from d group by endpoint_id`,
      [maxAgeMs, limit, this.options.letterExpiryMs],
    );
  }

  /** The next free slot is this one's; milliseconds until it comes (GCRA: slots are `spacingMs` apart, unused ones are lost). */
  private async reserve(
    endpointId: string,
    column: 'next_slot_at' | 'next_retry_slot_at',
    spacingMs: number,
  ): Promise<number> {
    const [row] = await this.db.query<[{ in_ms: number }]>(
      `with p as (
         insert into endpoint_paces as p (endpoint_id, ${column}) values ($1, now() + $2::float8 * interval '1 ms')
         on conflict (endpoint_id) do update set ${column} = greatest(p.${column}, now()) + $2::float8 * interval '1 ms'
         returning ${column} as next_at)
       select (extract(epoch from next_at - clock_timestamp()) * 1000 - $2)::float8 as in_ms from p`,
      [endpointId, spacingMs],
    );
    return row.in_ms;
  }

  private async hold({ deliveryId }: TurnRequest): Promise<Turn> {
    await this.db.query(
      `update deliveries set status = 'held', reason = 'rate_limited', held_since = coalesce(held_since, now()), slot = null,
              next_attempt_at = null, sweep_after = null, updated_at = now()
        where id = $1 and status in ('pending', 'retrying') and not wake_requested`,
      [deliveryId],
    );
    return { kind: 'held' };
  }

  private async defer({ deliveryId }: TurnRequest, inMs: number, slot: 'taken' | 'retry'): Promise<Turn> {
    await this.db.query(
      `update deliveries set reason = 'rate_limited', slot = $3, updated_at = now(),
              next_attempt_at = now() + $2::float8 * interval '1 ms',
              sweep_after = now() + ($2::float8 + ${sweepGraceMs}) * interval '1 ms'
        where id = $1 and status in ('pending', 'retrying') and not wake_requested`,
      [deliveryId, inMs, slot],
    );
    return { kind: 'wait' };
  }
}

const paceStatement = `
  select e.pace = 'probing' as probing, ${isRising} as rising, ${ratePerSecond} as rate,
         coalesce((select extract(epoch from p.next_slot_at - now())::float8 * 1000 from endpoint_paces p where p.endpoint_id = e.id), 0) as slot_in_ms,
         exists (select from deliveries h where h.endpoint_id = e.id and h.status = 'held') as backlog
    from endpoints e where e.id = $1`;

interface PaceRow {
  readonly probing: boolean;
  readonly rising: boolean;
  readonly rate: number | null;
  readonly slot_in_ms: number;
  readonly backlog: boolean;
}

interface WaitingRow {
  readonly id: string;
  readonly pace: WaitingEndpoint['pace'];
  readonly probe_free: boolean;
  readonly timeout_ms: number;
  readonly rising_for_ms: number | null;
  readonly released: number;
  readonly rate: number | null;
  readonly slot_in_ms: number | null;
  readonly rests_for_ms: number | null;
}
