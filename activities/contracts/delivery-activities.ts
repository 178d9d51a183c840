import type { AttemptErrorCode, DeliveryReason, TerminalStatus } from '../../src/domain/closed-lists.js';

/** Names one attempt: unique on (delivery, run id, sequence), so that a Reset, which has a new run id, sends again. */
export interface AttemptKey {
  readonly deliveryId: string;
  readonly runId: string;
  /** 1, 2, … within the run. A `not_sent` attempt keeps its sequence. */
  readonly sequence: number;
}

export interface AttemptInput extends AttemptKey {
  /** Drawn by the workflow before the attempt, so that the record statement can compute the next attempt's time. */
  readonly jitterFactor: number;
  readonly intent: AttemptIntent;
  /** `retryNow`: the wait is over, whatever the row says. */
  readonly force: boolean;
}

/**
 * What an attempt may do with a row that is already closed. `redeliver`: started by hand: open the next round.
 * `reset`: the same, as long as this run has made no attempt. `resume`: the closed row ends the run; starts by machine never redeliver.
 */
export type AttemptIntent = 'redeliver' | 'reset' | 'resume';

/** Where the next attempt goes and which it is: the text that the Web UI shows beside it. */
export interface NextAttempt {
  readonly number: number;
  readonly host: string;
  /** The fairness key of ordinary attempts. */
  readonly endpointId: string;
}

/** The search attributes that a hand-started run lacks. */
export interface DeliveryLabels {
  readonly tenantId: string;
  readonly endpointId: string;
  readonly eventType: string;
  readonly eventId: string;
}

/** The row is closed: by this attempt, by an earlier one, or by somebody else. */
export interface ClosedOutcome {
  readonly kind: 'closed';
  readonly status: TerminalStatus;
  readonly reason: DeliveryReason;
  readonly round: number;
  readonly attemptCount: number;
  readonly lastStatusCode: number | null;
  readonly lastError: string | null;
  readonly labels: DeliveryLabels;
}

/** What an attempt, or the wish for one, came to. */
export type AttemptOutcome =
  /** Sent and answered, or refused by policy; recorded; another attempt follows after `waitMs`, counted by the database's clock. */
  | {
      readonly kind: 'failed';
      readonly round: number;
      readonly number: number;
      readonly reason: DeliveryReason;
      readonly statusCode: number | null;
      readonly error: string;
      readonly waitMs: number;
      readonly next: NextAttempt;
      readonly labels: DeliveryLabels;
    }
  | ClosedOutcome
  /** The row waits for its endpoint; the sweeper releases it. */
  | { readonly kind: 'held'; readonly reason: DeliveryReason; readonly round: number; readonly labels: DeliveryLabels }
  /** The row's next attempt lies in the future. Spends nothing. */
  | {
      readonly kind: 'not_due';
      readonly round: number;
      readonly reason: DeliveryReason;
      readonly waitMs: number;
      readonly next: NextAttempt;
      readonly labels: DeliveryLabels;
    }
  /** The endpoint isn't quick: send this one as an ordinary activity. Spends nothing. */
  | {
      readonly kind: 'use_ordinary';
      readonly round: number;
      readonly next: NextAttempt;
      readonly labels: DeliveryLabels;
    }
  /** Nothing left the machine. Spends no attempt: same sequence again after a short, growing wait. */
  | { readonly kind: 'not_sent'; readonly cause: NotSentCause }
  /** Sent, but recording failed for 3 s: `recordAttempt` has to run until it succeeds. The answer's body is given up. */
  | { readonly kind: 'unrecorded'; readonly sent: SentAttempt }
  /** A cancelled run found a newer round: a redelivery was accepted after the cancellation, and is not to be lost with it. */
  | { readonly kind: 'superseded' }
  /** No such delivery. */
  | { readonly kind: 'unknown_delivery' };

/** `express_attempt_in_flight`: the process that took the event is making this very attempt. */
export type NotSentCause = 'load_failed' | 'no_connection_free' | 'proxy_failed' | 'express_attempt_in_flight';

export type CancelOutcome = Extract<AttemptOutcome, { kind: 'closed' | 'superseded' | 'unknown_delivery' }>;

/** All that is worth recording of an attempt, without its body. */
export interface SentAttempt {
  readonly round: number;
  readonly startedAt: string;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly errorCode: AttemptErrorCode | null;
  readonly retryAfterMs: number | null;
  readonly remoteAddress: string | null;
  readonly resent: boolean;
}

export interface RecordAttemptInput extends AttemptInput {
  readonly sent: SentAttempt;
}

export interface CancelInput {
  readonly deliveryId: string;
  readonly runId: string;
  /** The round that the run last knew of; 0 when it knows of none. */
  readonly round: number;
  /** The round that was asked to be cancelled, where the request named it: a later one is not meant. */
  readonly requestedRound: number | null;
}

/** Names one run of a delivery's workflow. */
export interface CancelRunInput {
  readonly deliveryId: string;
  readonly runId: string;
}

/** Local activity: load, and where the endpoint is quick and the row due, sign, POST and record. */
export interface FirstAttemptActivities {
  firstAttempt(input: AttemptInput): Promise<AttemptOutcome>;
}

/** Ordinary activity on `posthorn-attempts`: load, sign, POST, record. */
export interface AttemptActivities {
  attempt(input: AttemptInput): Promise<AttemptOutcome>;
}

/** Ordinary activities on `posthorn-control`, retried without limit: they only read and write Postgres. */
export interface SettlementActivities {
  /** Records an attempt that was sent but could not be recorded at once. */
  recordAttempt(input: RecordAttemptInput): Promise<AttemptOutcome>;
  /** What was recorded of an attempt whose activity died, else records `outcome_unknown`, which spends the attempt. */
  settleAttempt(input: AttemptInput): Promise<AttemptOutcome>;
  /** Turns a waiting row `cancelled` and returns the state it has then. A round that was opened after the run's own stays open. */
  cancelDelivery(input: CancelInput): Promise<CancelOutcome>;
  /** Requests the cancellation of the run that calls it: only such a run can end as Cancelled. */
  requestCancellation(input: CancelRunInput): Promise<void>;
}

export type DeliverActivities = FirstAttemptActivities & AttemptActivities & SettlementActivities;
