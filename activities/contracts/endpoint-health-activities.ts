import type { EndpointStatus } from '../../src/domain/closed-lists.js';
import type { Deadline, HealthTask } from '../../src/domain/endpoint-plan.js';

export interface EndpointInput {
  readonly endpointId: string;
}

/** What is to be done about an endpoint now. Each is its own activity, so that the timeline names it. */
export type { Deadline, HealthTask } from '../../src/domain/endpoint-plan.js';

export interface PlanInput extends EndpointInput {
  /** The version that the workflow has dealt with; null at its start. */
  readonly dealtWith: number | null;
}

/** What the endpoint needs now, and when it will need something again: read from Postgres, by its clock. */
export type HealthPlan =
  | { readonly kind: 'deleted' }
  | {
      readonly kind: 'plan';
      readonly version: number;
      readonly host: string;
      readonly status: EndpointStatus;
      readonly statusReason: string | null;
      /** Due now, in the order in which to do them. */
      readonly tasks: readonly HealthTask[];
      /** The next deadline; null when only a change can bring one. */
      readonly next: Deadline | null;
      /** All deadlines, for whoever looks. */
      readonly coming: readonly Deadline[];
    };

/** What a call to the endpoint came to, for the timeline: no body, no secret. */
export interface CallOutcome {
  readonly result: 'passed' | 'failed' | 'not_due' | 'not_sent';
  readonly way: string | null;
  readonly statusCode: number | null;
  readonly error: string | null;
}

/** What became of the owner's mails; the reasons of failures are with the notices. */
export interface MailOutcome {
  readonly sent: number;
  readonly failed: number;
}

/**
 * Ordinary activities on `posthorn-control`: they read and write Postgres, and may run twice. Each does its task only if it is
 * still due, in one transaction with what is told of it.
 */
export interface HealthActivities {
  /** Notes what the workflow has dealt with, and reads what is next. */
  planHealth(input: PlanInput): Promise<HealthPlan>;
  /** Nobody answered for the endpoint in time: it is disabled, and what was held for it becomes dead letters. */
  expireVerification(input: EndpointInput): Promise<void>;
  /** Its date has come: it takes nothing any more, and what waits becomes dead letters. */
  expireEndpoint(input: EndpointInput): Promise<void>;
  /** Too long without one success: it is disabled, and what waits becomes dead letters. */
  disableEndpoint(input: EndpointInput): Promise<void>;
  /** The owner hears that it has failed for so long. */
  warnOwner(input: EndpointInput): Promise<void>;
  /** … that it was disabled by its own answer. */
  tellDisabled(input: EndpointInput): Promise<void>;
  /** … that it refuses our credentials. */
  tellRefused(input: EndpointInput): Promise<void>;
  /** … that the trouble that was told of is over. */
  tellRecovered(input: EndpointInput): Promise<void>;
  /** … that its date comes near. */
  tellExpiring(input: EndpointInput): Promise<void>;
  /** … that its client certificate ends soon. */
  tellCertificateExpiring(input: EndpointInput): Promise<void>;
}

/** Ordinary activities on `posthorn-attempts`: they call somebody, so they may hang as attempts do. */
export interface EndpointCallActivities {
  /** One try to verify the endpoint, if one is due. */
  verifyEndpoint(input: EndpointInput): Promise<CallOutcome>;
  /** The endpoint's periodic ping, if one is due. */
  pingEndpoint(input: EndpointInput): Promise<CallOutcome>;
  /** A ping to a disabled endpoint: does it answer again? */
  probeEndpoint(input: EndpointInput): Promise<CallOutcome>;
  /** The mails to the owner that are due. */
  sendMail(input: EndpointInput): Promise<MailOutcome>;
}
