import type { AttemptKey } from '../../activities/contracts/delivery-activities.js';
import type { DeliveryReason } from '../domain/closed-lists.js';
import { findUntouched, type Loaded, loadForAttempts, type Untouched } from './attempt-load.js';
import type { AttemptRecord, LoadedDelivery, RecordResult } from './attempt-rows.js';
import { storedForm } from './attempt-columns.js';
import type { Database } from './data-source.js';
import { sweepGraceMs } from './grace.js';
import { Group } from './group.js';
import {
  ExpectedDeliveries,
  firstLoad,
  type FreshDelivery,
  KnownEndpoints,
  type Moment,
  thisMoment,
} from './known-endpoints.js';
import { recordDelivered } from './record-delivered.js';
import { recordFailed } from './record-failed.js';

/** Rows of one statement: enough that more would gain nothing, few enough that none takes long. */
const groupMost = 200;
const statementsAtOnce = 1;

/** An attempt is one read and one write: {@link load} and {@link record}. Those of many attempts go together. */
export class AttemptStore {
  private readonly loads: Group<AttemptKey, Loaded | null>;
  private readonly deliveredOnes: Group<AttemptRecord, RecordResult | null>;
  private readonly looks: Group<string, Untouched | null>;
  private readonly known: KnownEndpoints;
  private readonly expected = new ExpectedDeliveries();

  /** What is leased to `leaseHolder` is ours to attempt. */
  constructor(
    private readonly db: Database,
    leaseHolder: string | null = null,
    private readonly now: () => Moment = thisMoment,
  ) {
    this.known = new KnownEndpoints(now);
    const sizes = { most: groupMost, atOnce: statementsAtOnce };
    this.loads = new Group((keys) => loadForAttempts(db, keys, leaseHolder), sizes);
    this.looks = new Group((ids) => findUntouched(db, ids, leaseHolder), sizes);
    this.deliveredOnes = new Group((attempts) => recordDelivered(db, attempts), {
      ...sizes,
      keyOf: ({ deliveryId }) => deliveryId,
    });
  }

  /**
   * Everything about the delivery, and the outcome of this attempt if it is recorded already; null when there is no such delivery.
   * Of one that was made just now, whose first attempt this is, only that is read which isn't known.
   */
  async load(key: AttemptKey, given: FreshDelivery | null = null): Promise<LoadedDelivery | null> {
    const fresh = given ?? (key.sequence === 1 ? this.expected.take(key.deliveryId) : null);
    const known = fresh && this.known.find(fresh);
    if (known) {
      const now = this.known.isYoung(fresh) ? fresh : await this.looks.add(key.deliveryId);
      if (now?.settings === known.settings && now.leased === fresh.leased)
        return firstLoad(key.deliveryId, fresh, known);
    }
    const askedAt = this.now();
    const loaded = await this.loads.add(key);
    if (!loaded) return null;
    if (fresh) this.known.remember(loaded, askedAt);
    return loaded.delivery;
  }

  /** The first attempt of this delivery is about to be made in this process, by its workflow. */
  expect(deliveryId: string, fresh: FreshDelivery): void {
    this.expected.add(deliveryId, fresh);
  }

  /** Records an attempt with all its consequences. Null when this attempt was recorded before (then {@link load} tells its outcome). */
  record(attempt: AttemptRecord): Promise<RecordResult | null> {
    // Failures change what the endpoint's next one means, so they go one by one.
    return attempt.outcome === 'delivered' ? this.deliveredOnes.add(attempt) : recordFailed(this.db, attempt);
  }

  /**
   * The endpoint rests for longer than the row waits: the row says so, to readers and to the sweeper. `stretch` ≥ 1 spreads the
   * deliveries that wait for one rest, so that they don't come back at one instant.
   */
  async waitForEndpoint(deliveryId: string, stretch: number): Promise<void> {
    await this.db.query(
      `update deliveries d
          set next_attempt_at = now() + (e.not_before - now()) * $2, reason = 'retry_after', updated_at = now(),
              sweep_after = now() + (e.not_before - now()) * $2 + interval '${sweepGraceMs} ms'
         from endpoints e
        where d.id = $1 and e.id = d.endpoint_id and d.status in ('pending', 'retrying') and not d.wake_requested
          and e.not_before > greatest(d.next_attempt_at, now())`,
      [deliveryId, stretch],
    );
  }

  /**
   * The true outcome of an attempt that somebody else has settled as `outcome_unknown` meanwhile: it takes that record's place,
   * and a delivered one closes the row before another request goes out. False when there was no such record.
   */
  async replaceUnknown(attempt: AttemptRecord): Promise<boolean> {
    const a = storedForm(attempt);
    const rows = await this.db.query<{ number: number }[]>(
      `with a as (
         update attempts set started_at = $4, duration_ms = $5, status_code = $6, error_code = $7, error_message = $8,
                response_headers = $9, response_body = $10, response_truncated = $11, remote_address = $12, resent = $13, outcome = $14
          where delivery_id = $1 and run_id = $2 and sequence = $3 and error_code = 'outcome_unknown'
         returning number, round
       ), d as (
         update deliveries d set status = 'succeeded', reason = 'delivered', last_status_code = $6, last_error = null,
                next_attempt_at = null, sweep_after = null, wake_requested = false, updated_at = now()
           from a where d.id = $1 and d.round = a.round and $14 = 'delivered'
       ), l as (
         update dead_letters set resolved_at = now(), resolution = 'replayed'
          where delivery_id = $1 and resolved_at is null and $14 = 'delivered' and exists (select from a)
       )
       select number from a`,
      [
        a.deliveryId,
        a.runId,
        a.sequence,
        a.startedAt,
        a.durationMs,
        a.statusCode,
        a.errorCode,
        a.errorMessage,
        a.responseHeaders,
        a.responseBody,
        a.responseTruncated,
        a.remoteAddress,
        a.resent,
        a.outcome,
      ],
    );
    return rows.length > 0;
  }

  /** A start by hand of a closed row is a redelivery: opens the next round, if the row is still closed in `round`. */
  async openNextRound(deliveryId: string, round: number, reason: DeliveryReason): Promise<void> {
    await this.db.query(
      `update deliveries
          set status = 'pending', reason = $3, round = round + 1, round_reason = $3, request_reason = null, requested_by = null, round_attempts = 0, next_attempt_at = now(),
              sweep_after = now() + interval '${sweepGraceMs} ms', wake_requested = false, updated_at = now()
        where id = $1 and round = $2 and status in ('succeeded', 'failed', 'cancelled')
          and exists (select from endpoints e where e.id = endpoint_id and e.deleted_at is null and e.status = 'active')`,
      [deliveryId, round, reason],
    );
  }
}
