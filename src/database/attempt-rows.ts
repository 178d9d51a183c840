import type { AttemptErrorCode, DeliveryReason, DeliveryStatus, EndpointStatus } from '../domain/closed-lists.js';
import type { EndpointToCall } from './endpoint-to-call.js';

/** All that an attempt needs to know, read by one statement, fresh. */
export interface LoadedDelivery {
  readonly id: string;
  readonly tenantId: string;
  readonly endpointId: string;
  readonly eventId: string;
  readonly type: string;
  readonly status: DeliveryStatus;
  readonly reason: DeliveryReason;
  readonly round: number;
  readonly attemptCount: number;
  readonly roundAttempts: number;
  readonly lastStatusCode: number | null;
  readonly lastError: string | null;
  readonly wakeRequested: boolean;
  /** An express lane makes the first attempt: ours, or that of another process, which lives. `none`: a workflow makes it. */
  readonly lease: 'ours' | 'another' | 'none';
  /** It has to ask for its turn before it is sent: the endpoint is down, answers again only just, or has a rate limit. */
  readonly mustAsk: boolean;
  readonly slot: 'taken' | 'retry' | null;
  /** Until the row's own next attempt and until the endpoint's rest is over; ≤ 0 when due. */
  readonly dueInMs: number;
  readonly restsForMs: number;
  readonly event: {
    readonly createdAt: Date;
    readonly apiVersion: string | null;
    readonly source: string | null;
    readonly subject: string | null;
    /** What the publisher's trace goes on with; null where nobody traces. */
    readonly traceparent?: string | null;
    /** Null once the payload was purged: there is nothing left to send. */
    readonly data: string | null;
    /** What its type says about delivering it; null: as published. */
    readonly typeRules: string | null;
  };
  readonly endpoint: EndpointToCall & {
    readonly status: EndpointStatus;
    readonly statusReason: string | null;
    readonly deleted: boolean;
    readonly quick: boolean;
    readonly succeededBefore: boolean;
    /** The version that it is pinned to. */
    readonly apiVersion: string;
  };
  /** This run has made an attempt before. */
  readonly runHasAttempts: boolean;
  /** Set when this very attempt is recorded already. */
  readonly recorded: RecordedAttempt | null;
}

export interface RecordedAttempt {
  readonly number: number;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  readonly outcome: AttemptRowOutcome;
}

export type AttemptRowOutcome = 'delivered' | 'failed';

/** One attempt as it is to be recorded. */
export interface AttemptRecord {
  readonly id: string;
  readonly deliveryId: string;
  readonly runId: string;
  readonly sequence: number;
  readonly round: number;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly errorCode: AttemptErrorCode | null;
  readonly errorMessage: string | null;
  readonly responseHeaders: readonly (readonly [string, string])[];
  readonly responseBody: Buffer;
  readonly responseTruncated: boolean;
  readonly remoteAddress: string | null;
  readonly resent: boolean;
  readonly outcome: AttemptRowOutcome;
  /** 410: the endpoint is disabled by this very statement. */
  readonly gone: boolean;
  /** 401 or 403 from an endpoint that had accepted before. */
  readonly refused: boolean;
  /** The next wait of the schedule, or null when it is exhausted. */
  readonly waitMs: number | null;
  /** The endpoint asked for a rest: all of its deliveries wait this long. */
  readonly restMs: number | null;
  readonly letterExpiryMs: number;
  /** Absent: true. False where it failed by what the producer registered of the event's type: that says nothing about the endpoint. */
  readonly blamesEndpoint?: boolean;
  /** Should the endpoint be down: how long nobody asks it again. */
  readonly probeRestMs: number;
}

/** The row after the statement. */
export interface RecordResult {
  readonly status: DeliveryStatus;
  readonly reason: DeliveryReason;
  readonly round: number;
  readonly attemptCount: number;
  readonly roundAttempts: number;
  readonly number: number;
  readonly waitMs: number;
  readonly lastStatusCode: number | null;
  readonly lastError: string | null;
  /** A letter was written: the endpoint's queue is to be told. */
  readonly letter: boolean;
  /** Its other waiting deliveries are to be closed. */
  readonly endpointGone: boolean;
  /** Something about the endpoint changed that its workflow doesn't know yet. */
  readonly healthChanged: boolean;
}
