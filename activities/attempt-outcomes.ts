import type { AttemptOutcome, ClosedOutcome, DeliveryLabels, NextAttempt } from './contracts/delivery-activities.js';
import type { LoadedDelivery, RecordResult } from '../src/database/attempt-rows.js';
import { isTerminal } from '../src/domain/closed-lists.js';

/** Turns rows into what the workflow is told: ids, numbers and reasons, never a payload or an answer's body. */

export function labelsOf(delivery: LoadedDelivery): DeliveryLabels {
  return {
    tenantId: delivery.tenantId,
    endpointId: delivery.endpointId,
    eventType: delivery.type,
    eventId: delivery.eventId,
  };
}

export function nextAttemptOf(delivery: LoadedDelivery, number: number): NextAttempt {
  return { number, host: hostOf(delivery.endpoint.url), endpointId: delivery.endpointId };
}

export function closedOutcome(delivery: LoadedDelivery, row: ClosedRow): ClosedOutcome {
  return {
    kind: 'closed',
    status: row.status,
    reason: row.reason,
    round: row.round,
    attemptCount: row.attemptCount,
    lastStatusCode: row.lastStatusCode,
    lastError: row.lastError,
    labels: labelsOf(delivery),
  };
}

type ClosedRow = Pick<ClosedOutcome, 'status' | 'reason' | 'round' | 'attemptCount' | 'lastStatusCode' | 'lastError'>;

/** What the row says, where no attempt is to be made now. */
export function outcomeOfRow(delivery: LoadedDelivery): AttemptOutcome {
  const { status, round, reason } = delivery;
  if (isTerminal(status)) return closedOutcome(delivery, { ...delivery, status });
  if (status === 'held') return { kind: 'held', reason, round, labels: labelsOf(delivery) };
  return {
    kind: 'not_due',
    round,
    reason,
    waitMs: waitOf(delivery),
    next: nextAttemptOf(delivery, delivery.attemptCount + 1),
    labels: labelsOf(delivery),
  };
}

/** Until the row is due and its endpoint has rested. */
export function waitOf(delivery: LoadedDelivery): number {
  return Math.max(0, Math.ceil(Math.max(delivery.dueInMs, delivery.restsForMs)));
}

/** What a record statement made of the row. */
export function outcomeOfRecord(delivery: LoadedDelivery, result: RecordResult, error: string): AttemptOutcome {
  const { status, reason, round } = result;
  if (isTerminal(status)) return closedOutcome(delivery, { ...result, status });
  if (status === 'held') return { kind: 'held', reason, round, labels: labelsOf(delivery) };
  return {
    kind: 'failed',
    round,
    number: result.number,
    reason,
    statusCode: result.lastStatusCode,
    error,
    waitMs: result.waitMs,
    next: nextAttemptOf(delivery, result.number + 1),
    labels: labelsOf(delivery),
  };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'invalid URL';
}
