import type { DataSource, QueryRunner } from 'typeorm';
import type { DeliveryStatus } from '../domain/closed-lists.js';
import { sweepGraceMs } from './grace.js';
import { holderLives } from './lease-sql.js';

/** One process sweeps at a time, and one releases. */
const locks = { sweep: 7_406_200_032, release: 7_406_200_033 } as const;
export const sweepBatch = 200;

/** A row that should have moved by now. */
export interface OverdueDelivery {
  readonly id: string;
  readonly tenantId: string;
  readonly endpointId: string;
  readonly eventId: string;
  readonly type: string;
  readonly round: number;
  readonly wakeRequested: boolean;
}

/** Endpoints that have held deliveries: a walk from one to the next over the index, whatever number each has. */
export const endpointsWithHeld = `
  with recursive h as (
    (select endpoint_id from deliveries where status = 'held' order by endpoint_id limit 1)
    union all
    select (select d.endpoint_id from deliveries d where d.status = 'held' and d.endpoint_id > h.endpoint_id order by d.endpoint_id limit 1)
      from h where h.endpoint_id is not null)
  select endpoint_id from h where endpoint_id is not null`;

/** Reads and statements of the sweeper; each one is safe against whatever happened between the sweeper's steps. */
export class SweepStore {
  constructor(private readonly db: DataSource) {}

  /** Runs `work` if no other process does the same just now. The lock lives in a connection, so it dies with its process. */
  async exclusively(work: () => Promise<void>, what: keyof typeof locks = 'sweep'): Promise<boolean> {
    const runner: QueryRunner = this.db.createQueryRunner();
    try {
      const [row] = (await runner.query('select pg_try_advisory_lock($1) as taken', [locks[what]])) as {
        taken: boolean;
      }[];
      if (!row?.taken) return false;
      try {
        await work();
        return true;
      } finally {
        await runner.query('select pg_advisory_unlock($1)', [locks[what]]);
      }
    } finally {
      await runner.release();
    }
  }

  /** What an express lane held that is dead is ours. */
  async freeDeadLeases(): Promise<void> {
    await this.db.query(
      `update deliveries set lease_holder = null
        where id in (select d.id from deliveries d
                      where d.sweep_after <= now() and d.lease_holder is not null and not ${holderLives('d.lease_holder')}
                      limit ${sweepBatch * 10})`,
    );
  }

  /** By the database's clock: of each endpoint the oldest, then of each the next, so that one endpoint's many hold nobody up. */
  async overdue(): Promise<OverdueDelivery[]> {
    return await this.db.query<OverdueDelivery[]>(
      `select id, tenant_id as "tenantId", endpoint_id as "endpointId", event_id as "eventId", type, round,
              wake_requested as "wakeRequested"
         from (select *, row_number() over (partition by endpoint_id order by sweep_after) as nth
                 from (select * from deliveries where sweep_after <= now() and lease_holder is null order by sweep_after limit ${sweepBatch * 10}) oldest) o
        order by nth, sweep_after limit ${sweepBatch}`,
    );
  }

  /** The row as it is now: what a closed workflow had recorded before it closed is visible here. */
  async statusOf(
    deliveryId: string,
  ): Promise<{ status: DeliveryStatus; round: number; wakeRequested: boolean } | null> {
    const [row] = await this.db.query<{ status: DeliveryStatus; round: number; wakeRequested: boolean }[]>(
      `select status, round, wake_requested as "wakeRequested" from deliveries where id = $1`,
      [deliveryId],
    );
    return row ?? null;
  }

  /** These are in good hands: look again later. */
  async lookAgainLater(deliveryIds: readonly string[]): Promise<void> {
    if (deliveryIds.length === 0) return;
    await this.db.query(
      `update deliveries set sweep_after = greatest(sweep_after, now() + interval '${sweepGraceMs} ms')
        where id = any($1) and sweep_after is not null`,
      [deliveryIds],
    );
  }

  /** An operator terminated the workflow by hand: the row says so, unless a redelivery was asked for since; false then. */
  async closeTerminated(deliveryId: string, round: number): Promise<boolean> {
    const rows = await this.db.query<unknown[]>(
      `with d as (update deliveries set status = 'cancelled', reason = 'terminated_by_operator', next_attempt_at = null, sweep_after = null,
              updated_at = now()
        where id = $1 and round = $2 and status in ('pending', 'retrying') and not wake_requested returning 1) select 1 from d`,
      [deliveryId, round],
    );
    return rows.length > 0;
  }

  /** The workflow knows of the redelivery. */
  async woken(deliveryId: string, round: number): Promise<void> {
    await this.db.query(
      'update deliveries set wake_requested = false where id = $1 and round = $2 and wake_requested',
      [deliveryId, round],
    );
  }

  /**
   * Endpoints that take nothing any more but still have deliveries that wait: a process died between the two statements, or an
   * event was published while the endpoint's state changed.
   */
  async endpointsToSettle(): Promise<string[]> {
    const rows = await this.db.query<{ id: string }[]>(
      `select distinct d.endpoint_id as id from deliveries d join endpoints e on e.id = d.endpoint_id
        where d.sweep_after <= now() and (e.deleted_at is not null or e.status <> 'active')
       union
       select e.id from (${endpointsWithHeld}) h join endpoints e on e.id = h.endpoint_id
        where e.deleted_at is not null or e.status in ('disabled', 'expired') limit 20`,
    );
    return rows.map(({ id }) => id);
  }

  /** Endpoints with letters that nobody was told of for so long that a signal must have been lost. */
  async endpointsWithUnannouncedLetters(graceMs: number): Promise<string[]> {
    const rows = await this.db.query<{ id: string }[]>(
      `select distinct endpoint_id as id from dead_letters
        where announced_at is null and created_at < now() - $1 * interval '1 ms' limit 100`,
      [graceMs],
    );
    return rows.map(({ id }) => id);
  }
}
