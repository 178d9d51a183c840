import type { DataSource } from 'typeorm';
import type { AttemptErrorCode, DeliveryReason, DeliveryStatus } from '../domain/closed-lists.js';
import type { LetterResolution } from '../domain/letters.js';

/** What is kept of a delivery's past; the newest attempts and letters, where there are very many. */
export interface DeliveryHistory {
  readonly delivery: HistoryDelivery;
  readonly attempts: readonly HistoryAttempt[];
  readonly letters: readonly HistoryLetter[];
  readonly past: readonly PastEntry[];
  readonly truncated: boolean;
}

export interface HistoryDelivery {
  readonly published_status: DeliveryStatus;
  readonly status: DeliveryStatus;
  readonly reason: DeliveryReason;
  readonly round: number;
  readonly round_reason: DeliveryReason | null;
  readonly attempt_count: number;
  readonly next_attempt_at: Date | null;
  readonly held_since: Date | null;
  readonly last_error: string | null;
  readonly request_reason: string | null;
  readonly requested_by: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** Kept by the row itself, as it happened. Times as Postgres writes them into JSON. */
export type PastEntry =
  | {
      readonly kind: 'held';
      readonly round: number;
      readonly reason: DeliveryReason;
      readonly at: string;
      readonly until: string;
    }
  | {
      readonly kind: 'redelivery';
      readonly round: number;
      readonly reason: DeliveryReason | null;
      readonly at: string;
      readonly by: string | null;
      readonly note: string | null;
    };

export interface HistoryAttempt {
  readonly number: number;
  readonly round: number;
  readonly started_at: Date;
  readonly duration_ms: number;
  readonly status_code: number | null;
  readonly error_code: AttemptErrorCode | null;
  readonly error_message: string | null;
  readonly outcome: 'delivered' | 'failed';
  readonly asked_to_wait: boolean;
}

export interface HistoryLetter {
  readonly round: number;
  readonly reason: DeliveryReason;
  readonly created_at: Date;
  readonly resolution: LetterResolution | null;
  readonly resolved_at: Date | null;
  /** Until it is resolved: who asked to send it again. */
  readonly resolved_by: string | null;
  readonly resolved_reason: string | null;
}

const mostAttempts = 250;
const mostLetters = 100;
/** As the database keeps them. */
const mostPast = 50;

/** Null when the tenant has no such delivery. */
export async function readHistory(db: DataSource, tenantId: string, id: string): Promise<DeliveryHistory | null> {
  const [row] = await db.query<(HistoryDelivery & { past: PastEntry[] | null })[]>(
    `select published_status, status, reason, round, attempt_count, next_attempt_at, held_since, last_error, request_reason,
            requested_by, round_reason, past, created_at, updated_at
       from deliveries where tenant_id = $1 and id = $2`,
    [tenantId, id],
  );
  if (!row) return null;
  const { past, ...delivery } = row;
  const attempts = await db.query<HistoryAttempt[]>(
    `select number, round, started_at, duration_ms, status_code, error_code, error_message, outcome,
            coalesce(status_code in (429, 503) and response_headers ilike '%["retry-after",%', false) as asked_to_wait
       from attempts where delivery_id = $1 order by number desc limit ${mostAttempts + 1}`,
    [id],
  );
  const letters = await db.query<HistoryLetter[]>(
    `select round, reason, created_at, resolution, resolved_at, resolved_by, resolved_reason
       from dead_letters where delivery_id = $1 order by round desc limit ${mostLetters + 1}`,
    [id],
  );
  return {
    delivery,
    attempts: attempts.slice(0, mostAttempts).toReversed(),
    letters: letters.slice(0, mostLetters).toReversed(),
    past: past ?? [],
    truncated: attempts.length > mostAttempts || letters.length > mostLetters || (past?.length ?? 0) >= mostPast,
  };
}
