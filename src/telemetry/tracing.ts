import { formatTraceparent, parseTraceparent } from './traceparent.js';

/** What a span of an attempt tells: ids, never contents. */
export interface AttemptFacts {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly endpointId: string;
  readonly tenantId: string;
  readonly number: number;
  readonly runId: string;
  readonly lane: 'local' | 'ordinary' | 'express';
  /** As it was stored with the event. */
  readonly traceparent: string | null;
}

export interface AttemptEnd {
  readonly statusCode: number | null;
  readonly errorCode: string | null;
}

export interface AttemptSpan {
  /** To be sent on to the endpoint; null where nobody traces. */
  readonly traceparent: string | null;
  end(how: AttemptEnd): void;
}

/**
 * Traces from the publish request to every attempt. The context travels with the event, in Postgres: so histories carry none
 * of it, and a redelivery days later belongs to the same trace.
 */
export abstract class Tracing {
  /** Runs `work` with the `traceparent` that is to be stored with its events. What was given and is none counts as not given. */
  abstract publish<T>(given: string | undefined, work: (traceparent: string | null) => Promise<T>): Promise<T>;
  abstract startAttempt(facts: AttemptFacts): AttemptSpan;
  /** Sends what is waiting, for a short time. Never fails. */
  abstract stop(): Promise<void>;
}

/**
 * Traces nothing itself, and hands the publisher's context on unchanged: a parent id of our own would name a span that nobody
 * ever reports, and break the publisher's trace in two.
 */
export class PassiveTracing extends Tracing {
  publish<T>(given: string | undefined, work: (traceparent: string | null) => Promise<T>): Promise<T> {
    const parent = parseTraceparent(given);
    return work(parent && formatTraceparent(parent));
  }

  startAttempt({ traceparent }: AttemptFacts): AttemptSpan {
    return { traceparent, end: () => undefined };
  }

  async stop(): Promise<void> {
    // Nothing waits.
  }
}
