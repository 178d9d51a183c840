import type { DeliveryReason, DeliveryStatus } from '../../src/domain/closed-lists.js';

/** The delivery's id alone, so that anybody can start or reset the workflow from the Web UI or the CLI. */
export interface DeliverInput {
  readonly deliveryId: string;
}

export interface DeliverResult {
  readonly status: DeliveryStatus;
  readonly round: number;
  readonly attempts: number;
}

/** Answer of the `state` query, for the Web UI. */
export interface DeliverState {
  readonly phase: 'attempting' | 'waiting' | 'settling' | 'closed';
  readonly round: number;
  readonly attempts: number;
  readonly lastError: string | null;
  readonly waitingFor: DeliveryReason | null;
  /** Milliseconds of the wait in progress, and when it began (workflow time, RFC 3339). */
  readonly waitMs: number | null;
  readonly waitingSince: string | null;
}

export const deliverSignals = { retryNow: 'retryNow', cancel: 'cancel' } as const;
export const deliverQueries = { state: 'state' } as const;

/** Types of the named failures with which `deliver` ends. */
export const deliverFailures = {
  exhausted: 'DeliveryExhausted',
  gone: 'EndpointGone',
  disabled: 'EndpointDisabled',
  expired: 'EndpointExpired',
  queueAge: 'QueueAgeExceeded',
  payloadExpired: 'PayloadExpired',
  invalidInput: 'InvalidInput',
  other: 'DeliveryFailed',
} as const;
