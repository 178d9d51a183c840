import type { DataSource, QueryRunner } from 'typeorm';
import type { DeliveryStatus } from '../domain/closed-lists.js';
import { sweepGraceMs } from './attempt-store.js';

/** One process sweeps at a time. */
const sweepLock = 7_406_200_032;
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

/** Reads and statements of the sweeper; each one is safe against whatever happened between the sweeper's steps. */
export class SweepStore {
  constructor(private readonly db: DataSource) {}

  /** Runs `work` if no other process sweeps just now. The lock lives in a connection, so it dies with its process. */
  async exclusively(work: () => Promise<void>): Promise<boolean> {
    const runner: QueryRunner = this.db.createQueryRunner();
    try {
      const [row] = (await runner.query('select pg_try_advisory_lock($1) as taken', [sweepLock])) as {
        taken: boolean;
      }[];
      if (!row?.taken) return false;
      try {
        await work();
        return true;
      } finally {
        await runner.query('select pg_advisory_unlock($1)', [sweepLock]);
      }
    } finally {
      await runner.release();
    }
  }

  /** Oldest first, by the database's clock. */
  async overdue(): Promise<OverdueDelivery[]> {
    return await this.db.query<OverdueDelivery[]>(
      `select id, tenant_id as "tenantId", endpoint_id as "endpointId", event_id as "eventId", type, round,
              wake_requested as "wakeRequested"
         from deliveries where sweep_after <= now() order by sweep_after limit ${sweepBatch}`,
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

  /** An operator terminated the workflow by hand: the row says so, unless a redelivery was asked for since. */
  async closeTerminated(deliveryId: string, round: number): Promise<void> {
    await this.db.query(
      `update deliveries set status = 'cancelled', reason = 'terminated_by_operator', next_attempt_at = null, sweep_after = null,
              updated_at = now()
        where id = $1 and round = $2 and status in ('pending', 'retrying') and not wake_requested`,
      [deliveryId, round],
    );
  }

  /** The workflow knows of the redelivery. */
  async woken(deliveryId: string, round: number): Promise<void> {
    await this.db.query(
      'update deliveries set wake_requested = false where id = $1 and round = $2 and wake_requested',
      [deliveryId, round],
    );
  }

  /** Held rows whose endpoint is active again go on at once. */
  async releaseHeld(): Promise<number> {
    const rows = await this.db.query<{ id: string }[]>(
      `with released as (
         update deliveries d set status = case when d.round_attempts > 0 then 'retrying' else 'pending' end, next_attempt_at = now(),
                sweep_after = now(), updated_at = now()
           from (select h.id from deliveries h join endpoints e on e.id = h.endpoint_id
                  where h.status = 'held' and e.status = 'active' and e.deleted_at is null order by h.id limit ${sweepBatch}) due
          where d.id = due.id and d.status = 'held'
        returning d.id)
       select id from released`,
    );
    return rows.length;
  }

  /** Endpoints that aren't active but still have waiting deliveries: a process died between the two statements. */
  async endpointsToSettle(): Promise<string[]> {
    const rows = await this.db.query<{ id: string }[]>(
      `select distinct d.endpoint_id as id from deliveries d join endpoints e on e.id = d.endpoint_id
        where d.sweep_after <= now() and (e.deleted_at is not null or e.status <> 'active') limit 20`,
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
