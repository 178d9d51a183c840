import type { DataSource } from 'typeorm';
import type { DeliveryReason } from '../domain/closed-lists.js';
import { insertLetters } from './letters-sql.js';

/** So many rows a statement: a lock is never held for long. */
export const closingBatch = 5_000;

export interface ClosedDelivery {
  readonly id: string;
  readonly status: 'cancelled' | 'failed' | 'held';
  readonly reason: DeliveryReason;
}

const lettersOfFailed = insertLetters(`d where status = 'failed'`, '$2');

/**
 * An endpoint that isn't active any more takes its waiting deliveries along: deleted → `cancelled`, disabled or expired → `failed`
 * with a letter, paused or unverified → `held`. The endpoint's own row must have been changed and committed before.
 */
export class WaitingDeliveries {
  constructor(
    private readonly db: DataSource,
    private readonly letterExpiryMs: number,
  ) {}

  /** All waiting deliveries of one endpoint, batch by batch; `told` hears of each batch. */
  async closeAllOf(
    endpointId: string,
    told: (closed: readonly ClosedDelivery[]) => void = () => undefined,
  ): Promise<number> {
    for (let total = 0; ;) {
      const closed = await this.close(
        `select d.id from deliveries d where d.endpoint_id = $1 and d.status in ('pending', 'retrying', 'held')
          order by d.id limit ${closingBatch} for update`,
        endpointId,
      );
      if (closed.length > 0) told(closed);
      total += closed.length;
      if (closed.length < closingBatch) return total;
    }
  }

  /** One delivery, if its endpoint isn't active; null when there was nothing to close. */
  async closeOne(deliveryId: string): Promise<ClosedDelivery | null> {
    const [closed] = await this.close('select $1::text as id', deliveryId);
    return closed ?? null;
  }

  /** One waiting delivery whose payload was purged: it can never be sent. Null when there was nothing to close. */
  async closeWithoutPayload(deliveryId: string): Promise<ClosedDelivery | null> {
    const [closed] = await this.db.query<ClosedDelivery[]>(
      `with d as (
         update deliveries d set status = 'failed', reason = 'payload_expired', next_attempt_at = null, sweep_after = null,
                wake_requested = false, slot = null, held_since = null, updated_at = now()
           from events v
          where d.id = $1 and v.tenant_id = d.tenant_id and v.id = d.event_id and v.payload_purged_at is not null
            and d.status in ('pending', 'retrying', 'held')
         returning d.*
       ), l as (${lettersOfFailed})
       select id, status, reason from d`,
      [deliveryId, this.letterExpiryMs],
    );
    return closed ?? null;
  }

  private async close(which: string, parameter: string): Promise<ClosedDelivery[]> {
    return await this.db.query<ClosedDelivery[]>(
      `with chosen as materialized (${which}), d as (
         update deliveries d set
           status = case when e.deleted_at is not null then 'cancelled' when e.status in ('disabled', 'expired') then 'failed' else 'held' end,
           reason = case
             when e.deleted_at is not null then 'endpoint_deleted'
             when e.status = 'expired' then 'endpoint_expired'
             when e.status = 'disabled' then
               case e.status_reason when 'gone' then 'endpoint_gone' when 'verification_expired' then 'verification_expired' else 'endpoint_disabled' end
             when e.status = 'paused' then 'endpoint_paused'
             else 'endpoint_unverified' end,
           next_attempt_at = null, sweep_after = null, wake_requested = false, updated_at = now()
         from endpoints e
        where e.id = d.endpoint_id and d.id in (select id from chosen)
          and (e.deleted_at is not null or e.status <> 'active')
          and (d.status in ('pending', 'retrying') or (d.status = 'held' and (e.deleted_at is not null or e.status in ('disabled', 'expired'))))
       returning d.*
       ), l as (${lettersOfFailed})
       select id, status, reason from d`,
      [parameter, this.letterExpiryMs],
    );
  }
}
