import type { DataSource } from 'typeorm';
import type { CancelInput, CancelOutcome } from '../../activities/contracts/delivery-activities.js';
import { type DeliveryReason, type DeliveryStatus, isTerminal } from '../domain/closed-lists.js';
import type { LetterResolution } from '../domain/letters.js';
import { type DeliveryHistory, readHistory } from './delivery-history.js';
import { type DeliveryFilter, deliveryListStatement } from './delivery-list.js';
import { keyset, type Page, type PageRequest, toPage } from './page.js';

export interface DeliveryRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly event_id: string;
  readonly endpoint_id: string;
  readonly type: string;
  readonly status: DeliveryStatus;
  readonly reason: DeliveryReason;
  readonly round: number;
  readonly attempt_count: number;
  readonly next_attempt_at: Date | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly request_reason: string | null;
  readonly requested_by: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export interface AttemptRow {
  readonly id: string;
  readonly number: number;
  readonly round: number;
  readonly started_at: Date;
  readonly duration_ms: number;
  readonly status_code: number | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly response_headers: string | null;
  readonly response_body: Buffer | null;
  readonly response_truncated: boolean;
  readonly remote_address: string | null;
  readonly resent: boolean;
}

/** Who asks for a redelivery or a cancellation, and why. */
export interface Requester {
  readonly keyId: string;
  readonly reason: string | null;
}

export type RedeliveryResult =
  | { readonly kind: 'accepted'; readonly delivery: DeliveryRow }
  | { readonly kind: 'already_in_progress'; readonly delivery: DeliveryRow }
  /** Nothing is left to send. */
  | { readonly kind: 'payload_expired' }
  | { readonly kind: 'letter_resolved'; readonly resolution: LetterResolution }
  | {
      readonly kind: 'endpoint_unavailable';
      readonly why: 'deleted' | 'disabled' | 'paused' | 'expired' | 'pending_verification';
    };

export type CancelResult =
  | { readonly kind: 'cancelled'; readonly delivery: DeliveryRow }
  | { readonly kind: 'already_closed'; readonly delivery: DeliveryRow };

const columns = `id, tenant_id, event_id, endpoint_id, type, status, reason, round, attempt_count, next_attempt_at, last_status_code,
  last_error, request_reason, requested_by, created_at, updated_at`;

/** A redelivery that Temporal wasn't told of is started by the sweeper after this long. */
const redeliveryGraceMs = 3_000;

export class DeliveryStore {
  constructor(private readonly db: DataSource) {}

  async list(tenantId: string, filter: DeliveryFilter, page: PageRequest): Promise<Page<DeliveryRow>> {
    const statement = deliveryListStatement(columns, tenantId, filter, page);
    if (!statement) return toPage<DeliveryRow>([], page);
    return toPage(await this.db.query<DeliveryRow[]>(statement.text, [...statement.values]), page);
  }

  async get(tenantId: string, id: string): Promise<DeliveryRow | null> {
    const [row] = await this.db.query<DeliveryRow[]>(
      `select ${columns} from deliveries where tenant_id = $1 and id = $2`,
      [tenantId, id],
    );
    return row ?? null;
  }

  /** The attempts of a delivery, oldest first; null when the tenant has no such delivery. */
  async attempts(tenantId: string, id: string, page: PageRequest): Promise<Page<AttemptRow> | null> {
    const delivery = await this.get(tenantId, id);
    if (!delivery) return null;
    const keys = keyset('number', page, 2, 'oldest first');
    const rows = await this.db.query<AttemptRow[]>(
      `select id, number, round, started_at, duration_ms, status_code, error_code, error_message, response_headers, response_body,
              response_truncated, remote_address, resent
         from attempts where delivery_id = $1 ${keys.where} ${keys.order}`,
      [id, ...keys.values],
    );
    return toPage(rows, page, ({ number }) => String(number));
  }

  /** What is kept of its past; null when the tenant has no such delivery. */
  history(tenantId: string, id: string): Promise<DeliveryHistory | null> {
    return readHistory(this.db, tenantId, id);
  }

  /**
   * Makes a redelivery durable: a closed row opens its next round, a waiting one is due at once. An attempt that is already
   * due or in flight is the answer to the wish, so nothing is written then. An open letter keeps who asked: should it be resolved
   * by a success, it was by them. With `letterRound`, only if that letter is open. Null when the tenant has no such delivery.
   */
  async redeliver(
    tenantId: string,
    id: string,
    by: Requester,
    { letterRound }: { letterRound?: number } = {},
  ): Promise<RedeliveryResult | null> {
    return this.db.transaction(async (tx) => {
      const [row] = await tx.query<
        {
          status: DeliveryStatus;
          waits: boolean | null;
          endpoint_status: string;
          deleted: boolean;
          purged: boolean;
        }[]
      >(
        `select d.status, greatest(d.next_attempt_at, e.not_before) > clock_timestamp() as waits, e.status as endpoint_status, e.deleted_at is not null as deleted,
                v.payload_purged_at is not null as purged
           from deliveries d join endpoints e on e.id = d.endpoint_id join events v on v.tenant_id = d.tenant_id and v.id = d.event_id
          where d.tenant_id = $1 and d.id = $2 for update of d`,
        [tenantId, id],
      );
      if (!row) return null;
      if (letterRound !== undefined) {
        // Whoever resolves a letter has the delivery's row locked, but for those who resolve it by hand.
        const [letter] = await tx.query<{ resolution: LetterResolution | null }[]>(
          'select resolution from dead_letters where delivery_id = $1 and round = $2 for update',
          [id, letterRound],
        );
        if (!letter) return null;
        if (letter.resolution !== null) return { kind: 'letter_resolved', resolution: letter.resolution };
      }
      if (row.purged) return { kind: 'payload_expired' };
      if (row.deleted) return { kind: 'endpoint_unavailable', why: 'deleted' };
      if (row.endpoint_status !== 'active') {
        return {
          kind: 'endpoint_unavailable',
          why: row.endpoint_status as 'disabled' | 'paused' | 'expired' | 'pending_verification',
        };
      }
      const inProgress = !isTerminal(row.status) && row.status !== 'held' && row.waits !== true;
      if (inProgress) {
        const [delivery] = await tx.query<DeliveryRow[]>(`select ${columns} from deliveries where id = $1`, [id]);
        return delivery ? { kind: 'already_in_progress', delivery } : null;
      }
      const [delivery] = await tx.query<DeliveryRow[]>(
        `with d as (
           update deliveries set
             round = round + (status in ('succeeded', 'failed', 'cancelled'))::int,
             round_reason = case when status in ('succeeded', 'failed', 'cancelled') then 'redelivery_requested' else round_reason end,
             round_attempts = case when status in ('succeeded', 'failed', 'cancelled') then 0 else round_attempts end,
             status = case when status in ('succeeded', 'failed', 'cancelled') or round_attempts = 0 then 'pending' else 'retrying' end,
             reason = 'redelivery_requested', request_reason = $2, requested_by = $3, held_since = null,
             next_attempt_at = now(), sweep_after = now() + interval '${redeliveryGraceMs} ms', wake_requested = true, updated_at = now()
            where id = $1 returning *
         ), l as (
           update dead_letters set resolved_by = $3, resolved_reason = $2 where delivery_id = $1 and resolved_at is null)
         select ${columns} from d`,
        [id, by.reason, by.keyId],
      );
      return delivery ? { kind: 'accepted', delivery } : null;
    });
  }

  /** Closes a waiting delivery. A request in flight finishes, and may still turn the row into `succeeded`. */
  async cancel(tenantId: string, id: string, by: Requester): Promise<CancelResult | null> {
    const [cancelled] = await this.db.query<DeliveryRow[]>(
      `with d as (
         update deliveries set status = 'cancelled', reason = 'cancelled_by_request', request_reason = $3, requested_by = $4,
                next_attempt_at = null, sweep_after = null, wake_requested = false, updated_at = now()
          where tenant_id = $1 and id = $2 and status in ('pending', 'retrying', 'held') returning *)
       select ${columns} from d`,
      [tenantId, id, by.reason, by.keyId],
    );
    if (cancelled) return { kind: 'cancelled', delivery: cancelled };
    const delivery = await this.get(tenantId, id);
    return delivery ? { kind: 'already_closed', delivery } : null;
  }

  /**
   * The same for a run that was asked to cancel: returns the final state, which may be another one. What was cancelled is the
   * round of the run's own attempts: a later one was opened by a redelivery, which was accepted after the cancellation.
   */
  async cancelFromWorkflow(input: CancelInput): Promise<CancelOutcome> {
    await this.cancelRow(input);
    const [row] = await this.db.query<DeliveryRow[]>(`select ${columns} from deliveries where id = $1`, [
      input.deliveryId,
    ]);
    if (!row) return { kind: 'unknown_delivery' };
    if (!isTerminal(row.status)) return { kind: 'superseded' };
    return {
      kind: 'closed',
      status: row.status,
      reason: row.reason,
      round: row.round,
      attemptCount: row.attempt_count,
      lastStatusCode: row.last_status_code,
      lastError: row.last_error,
      labels: { tenantId: row.tenant_id, endpointId: row.endpoint_id, eventType: row.type, eventId: row.event_id },
    };
  }

  /** False when there was nothing to cancel. */
  protected async cancelRow({ deliveryId: id, runId, round, requestedRound }: CancelInput): Promise<boolean> {
    const rows = await this.db.query<unknown[]>(
      `with d as (update deliveries set status = 'cancelled', reason = 'cancelled_by_request', next_attempt_at = null, sweep_after = null,
              wake_requested = false, updated_at = now()
        where id = $1 and status in ('pending', 'retrying', 'held')
          and round <= coalesce($4::integer, (select max(a.round) from attempts a where a.delivery_id = $1 and a.run_id = $2),
                                nullif($3::integer, 0), round)
        returning 1) select 1 from d`,
      [id, runId, round, requestedRound],
    );
    return rows.length > 0;
  }
}
