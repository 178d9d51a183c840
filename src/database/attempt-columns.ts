import type { DeliveryReason } from '../domain/closed-lists.js';
import type { AttemptRecord, RecordResult } from './attempt-rows.js';

/** Postgres text can't hold NUL: what an endpoint sent must never break recording it. */
function asText(text: string): string {
  return text.replaceAll('\u0000', '\uFFFD');
}

/** An attempt as its columns hold it. */
export function storedForm(attempt: AttemptRecord) {
  const { durationMs, errorMessage, responseHeaders, responseBody } = attempt;
  return {
    ...attempt,
    durationMs: Math.max(0, Math.round(durationMs)),
    errorMessage: errorMessage === null ? null : asText(errorMessage),
    responseHeaders: responseHeaders.length > 0 ? asText(JSON.stringify(responseHeaders)) : null,
    responseBody: responseBody.length > 0 ? responseBody : null,
  };
}

/** What every record statement says of the delivery's row as it is then. */
export interface RecordedRow {
  status: RecordResult['status'];
  reason: DeliveryReason;
  round: number;
  attempt_count: number;
  round_attempts: number;
  wait_ms: number | null;
  last_status_code: number | null;
  last_error: string | null;
  letter: boolean;
  gone: boolean;
  health_changed: boolean | null;
}

export function toRecordResult(row: RecordedRow): RecordResult {
  return {
    status: row.status,
    reason: row.reason,
    round: row.round,
    attemptCount: row.attempt_count,
    roundAttempts: row.round_attempts,
    number: row.attempt_count,
    waitMs: Math.max(0, Math.ceil(row.wait_ms ?? 0)),
    lastStatusCode: row.last_status_code,
    lastError: row.last_error,
    letter: row.letter,
    endpointGone: row.gone,
    healthChanged: row.health_changed ?? false,
  };
}
