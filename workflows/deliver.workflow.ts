import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  isCancellation,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  AttemptInput,
  AttemptIntent,
  AttemptOutcome,
  ClosedOutcome,
  NextAttempt,
} from '../activities/contracts/delivery-activities.js';
import { isDeliveryId } from '../src/domain/ids.js';
import { jitterFactor } from '../src/domain/retry-schedule.js';
import {
  deliverFailures,
  deliverQueries,
  deliverSignals,
  type DeliverInput,
  type DeliverResult,
  type DeliverState,
} from './contracts/deliver.js';
import { attemptActivity, firstAttemptActivity, settlements } from './support/activities.js';
import { failureTypeOf } from './support/failures.js';
import { attemptIntent, startedByMachine } from './support/run-origin.js';
import { labelAttributes } from './contracts/search-attributes.js';

export const retryNow = defineSignal(deliverSignals.retryNow);
/** The API names the round that it has closed; by hand, without one, it is the run's own. */
export const cancel = defineSignal<[round?: number]>(deliverSignals.cancel);
export const state = defineQuery<DeliverState>(deliverQueries.state);

/** An outage lasts; a connection comes free when an answer does, so nobody is to wait long after the others are done. */
const notSentWaitMs = { first: 1_000, most: 30_000, mostForConnection: 5_000 };

/**
 * One delivery through all its attempts. Postgres decides what happened; this workflow decides when what happens next:
 * the schedule is made of durable timers, so that each attempt, wait and reason is an event on the timeline.
 */
export function deliver(input: DeliverInput): Promise<DeliverResult> {
  return new DeliveryRun(input).toTheEnd();
}

class DeliveryRun {
  private readonly info = workflowInfo();
  private intent: AttemptIntent = attemptIntent(this.info);
  private sequence = 1;
  private jitter = 1;
  private next: NextAttempt = { number: 1, host: 'unknown', endpointId: this.info.workflowId };
  private notSentInARow = 0;
  private retryRequested = false;
  private forced = false;
  private cancelRequested = false;
  private cancelRound: number | null = null;
  private view: DeliverState = {
    phase: 'attempting',
    round: 0,
    attempts: 0,
    lastError: null,
    waitingFor: null,
    waitMs: null,
    waitingSince: null,
  };

  constructor(private readonly input: DeliverInput) {
    setHandler(retryNow, () => void (this.retryRequested = true));
    setHandler(cancel, (round) => {
      this.cancelRequested = true;
      this.cancelRound = typeof round === 'number' ? round : null;
    });
    setHandler(state, () => this.view);
  }

  async toTheEnd(): Promise<DeliverResult> {
    this.checkInput();
    let outcome = await this.firstAttempt();
    this.label(outcome);
    for (;;) {
      if ('next' in outcome) this.next = outcome.next;
      if ('round' in outcome) this.view = { ...this.view, round: outcome.round };
      // Between attempts, and only there, signals and cancellation are looked at.
      if (this.isCancelled() && outcome.kind !== 'closed') outcome = await this.settleCancellation();
      switch (outcome.kind) {
        case 'closed':
          // A redelivery may have opened the next round while this one was closing.
          if (!this.retryRequested || this.isCancelled()) return this.close(outcome);
          outcome = await this.attempt();
          break;
        case 'held':
          return { status: 'held', round: outcome.round, attempts: this.view.attempts };
        case 'failed':
          this.view = { ...this.view, attempts: outcome.number, lastError: outcome.error };
          if (await this.wait(outcome.waitMs, outcome.reason, outcome.statusCode ?? outcome.error))
            outcome = await this.attempt();
          break;
        case 'not_due':
          if (await this.wait(outcome.waitMs, outcome.reason, 'not due yet')) outcome = await this.attempt();
          break;
        case 'use_ordinary':
          outcome = await this.attempt();
          break;
        case 'not_sent':
          if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof deliver>(this.input);
          if (await this.wait(this.notSentWaitMs(outcome.cause), null, `nothing sent, ${outcome.cause}`))
            outcome = await this.attempt();
          break;
        case 'unrecorded': {
          const { sent } = outcome;
          this.view = { ...this.view, phase: 'settling' };
          outcome = await this.settled(() => settlements.recordAttempt({ ...this.attemptInput(), sent }));
          break;
        }
        case 'superseded':
          if (!CancellationScope.current().consideredCancelled) {
            // The round that was to be cancelled is closed; a redelivery has opened the next one, and this run goes on with it.
            this.cancelRequested = false;
            outcome = await this.attempt();
            break;
          }
          // This run can only end; the next one goes on with the round that was opened meanwhile.
          return continueAsNew<typeof deliver>(this.input);
        case 'unknown_delivery':
          throw invalidInput('there is no such delivery');
      }
    }
  }

  private checkInput(): void {
    const { deliveryId } = this.input ?? {};
    if (typeof deliveryId !== 'string' || !isDeliveryId(deliveryId))
      throw invalidInput('the input must be {"deliveryId": "whd_…"}');
    if (this.info.workflowId !== deliveryId) throw invalidInput('the workflow id must be the deliveryId');
  }

  private attemptInput(): AttemptInput {
    return {
      deliveryId: this.input.deliveryId,
      runId: this.info.runId,
      sequence: this.sequence,
      jitterFactor: this.jitter,
      intent: this.intent,
      force: false,
    };
  }

  /** The first attempt of the run, inside its first workflow task. */
  private firstAttempt(): Promise<AttemptOutcome> {
    const input = this.beginAttempt();
    return this.settled(() => firstAttemptActivity().firstAttempt(input));
  }

  private attempt(): Promise<AttemptOutcome> {
    const { endpointId, number, host } = this.next;
    const input = this.beginAttempt();
    return this.settled(() => attemptActivity(endpointId, `attempt ${number} → ${host}`).attempt(input));
  }

  private beginAttempt(): AttemptInput {
    this.view = { ...this.view, phase: 'attempting', waitingFor: null, waitMs: null, waitingSince: null };
    this.jitter = jitterFactor(Math.random());
    // A wish for an attempt now is kept until something has come of it: `not_sent` is repeated by force, too.
    this.forced ||= this.retryRequested;
    this.retryRequested = false;
    return { ...this.attemptInput(), force: this.forced };
  }

  /** What an attempt came to, whatever is signalled meanwhile; where its activity died, what was recorded of it. */
  private async settled(activity: () => Promise<AttemptOutcome>): Promise<AttemptOutcome> {
    let outcome: AttemptOutcome;
    try {
      outcome = await CancellationScope.nonCancellable(activity);
    } catch {
      this.view = { ...this.view, phase: 'settling' };
      outcome = await CancellationScope.nonCancellable(() => settlements.settleAttempt(this.attemptInput()));
    }
    if (outcome.kind === 'not_sent') {
      // The row was open when this run began: what closes it meanwhile is what the run was to come to.
      if (outcome.cause === 'express_attempt_in_flight') this.intent = 'resume';
      return outcome;
    }
    this.forced = false;
    this.notSentInARow = 0;
    // A run redelivers with its first attempt only. A reset run may stand anywhere in its schedule: there the activity knows.
    if (this.intent === 'redeliver') this.intent = 'resume';
    if (outcome.kind === 'failed' || outcome.kind === 'closed') this.sequence += 1;
    return outcome;
  }

  private notSentWaitMs(cause: string): number {
    const most = cause === 'no_connection_free' ? notSentWaitMs.mostForConnection : notSentWaitMs.most;
    const waitMs = Math.min(notSentWaitMs.first * 2 ** this.notSentInARow, most);
    this.notSentInARow += 1;
    return Math.round(waitMs * jitterFactor(Math.random()));
  }

  /** Sleeps until the time is over or `retryNow`; false when cancelled. */
  private async wait(waitMs: number, reason: DeliverState['waitingFor'], cause: string | number): Promise<boolean> {
    this.view = { ...this.view, phase: 'waiting', waitingFor: reason, waitMs, waitingSince: new Date().toISOString() };
    try {
      const summary = `${reason ?? 'waiting'} (${cause}), then attempt ${this.next.number}`;
      if (waitMs > 0) await condition(() => this.retryRequested || this.cancelRequested, waitMs, { summary });
    } catch (error) {
      if (!isCancellation(error)) throw error;
    }
    return !this.isCancelled();
  }

  private isCancelled(): boolean {
    return this.cancelRequested || CancellationScope.current().consideredCancelled;
  }

  private async settleCancellation(): Promise<AttemptOutcome> {
    this.view = { ...this.view, phase: 'settling' };
    const { deliveryId } = this.input;
    const { runId } = this.info;
    const requestedRound = CancellationScope.current().consideredCancelled ? null : this.cancelRound;
    return CancellationScope.nonCancellable(() =>
      settlements.cancelDelivery({ deliveryId, runId, round: this.view.round, requestedRound }),
    );
  }

  /** Completed when delivered, Failed with a named type when dead-lettered, Cancelled when cancelled. */
  private async close(outcome: ClosedOutcome): Promise<DeliverResult> {
    this.view = {
      ...this.view,
      phase: 'closed',
      waitingFor: null,
      waitMs: null,
      waitingSince: null,
      round: outcome.round,
      attempts: outcome.attemptCount,
      lastError: outcome.lastError,
    };
    switch (outcome.status) {
      case 'succeeded':
        return { status: 'succeeded', round: outcome.round, attempts: outcome.attemptCount };
      case 'failed':
        throw ApplicationFailure.create({
          type: failureTypeOf(outcome.reason),
          message: `${outcome.reason} after ${outcome.attemptCount} attempts, last: ${outcome.lastStatusCode ?? outcome.lastError ?? 'none'}`,
          nonRetryable: true,
        });
      case 'cancelled':
        await this.becomeCancelled();
        throw new CancelledFailure(outcome.reason);
    }
  }

  /**
   * Only a run whose cancellation was requested can end as Cancelled: where the row or the signal says so first, the run has it
   * requested. By an activity, since the server takes no such request from a workflow to itself.
   */
  private async becomeCancelled(): Promise<void> {
    const root = CancellationScope.current();
    if (root.consideredCancelled) return;
    const { deliveryId } = this.input;
    await CancellationScope.nonCancellable(() =>
      settlements.requestCancellation({ deliveryId, runId: this.info.runId }),
    );
    await condition(() => root.consideredCancelled, '10s').catch(() => undefined);
  }

  /** Runs that a person started carry no search attributes: they get them from the row. */
  private label(outcome: AttemptOutcome): void {
    if (startedByMachine(this.info) || !('labels' in outcome)) return;
    if (Object.keys(this.info.typedSearchAttributes.getAll()).length > 0) return;
    upsertSearchAttributes(labelAttributes(outcome.labels));
  }
}

function invalidInput(why: string): ApplicationFailure {
  return ApplicationFailure.create({
    type: deliverFailures.invalidInput,
    message: `Nothing was sent: ${why}`,
    nonRetryable: true,
  });
}
