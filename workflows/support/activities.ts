import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type {
  EndpointCallActivities,
  HealthActivities,
} from '../../activities/contracts/endpoint-health-activities.js';
import type { DeadLetterActivities } from '../../activities/contracts/dead-letter-activities.js';
import type {
  AttemptActivities,
  FirstAttemptActivities,
  SettlementActivities,
} from '../../activities/contracts/delivery-activities.js';
import type { ReplayActivities } from '../../activities/contracts/replay-activities.js';
import type { ReconcileActivities } from '../../activities/contracts/reconcile-activities.js';
import type { RetentionActivities } from '../../activities/contracts/retention-activities.js';
import { fairAmongEndpoints } from '../contracts/fairness.js';
import { taskQueues } from '../contracts/names.js';

/** Longer than any attempt may take (30 s) with loading and recording. */
const attemptTimeout = '45s';

/** The first attempt, inside the first workflow task: the cheapest way that still leaves it on the timeline. */
export function firstAttemptActivity(): FirstAttemptActivities {
  return proxyLocalActivities<FirstAttemptActivities>({
    startToCloseTimeout: attemptTimeout,
    // The schedule is the workflow's: a failure of the activity itself is settled, never repeated blindly.
    retry: { maximumAttempts: 1 },
    summary: 'first attempt of this run',
  });
}

/** Later attempts, and the first ones of endpoints that aren't quick: fair among endpoints, seen as dead after 10 s of silence. */
export function attemptActivity(endpointId: string, summary: string): AttemptActivities {
  return proxyActivities<AttemptActivities>({
    taskQueue: taskQueues.attempts,
    startToCloseTimeout: attemptTimeout,
    heartbeatTimeout: '10s',
    retry: { maximumAttempts: 1 },
    // Eager dispatch would bypass the fairness of the task queue.
    allowEagerDispatch: false,
    priority: fairAmongEndpoints(endpointId),
    summary,
  });
}

/** Calls to an endpoint that are no deliveries: they may hang as attempts do, so they stay away from the control queue. */
export function endpointCall(endpointId: string, summary: string): EndpointCallActivities {
  return proxyActivities<EndpointCallActivities>({
    taskQueue: taskQueues.attempts,
    // Two requests of 30 s each, at most.
    startToCloseTimeout: '75s',
    heartbeatTimeout: '10s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
    allowEagerDispatch: false,
    priority: fairAmongEndpoints(endpointId),
    summary,
  });
}

const control = {
  taskQueue: taskQueues.control,
  startToCloseTimeout: '30s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '15s' },
} as const;

/** What is due for an endpoint, and what is written about it. */
export const health = proxyActivities<HealthActivities>(control);

/** A bulk replay's batches, and what is written about it. */
export const replays = proxyActivities<ReplayActivities>(control);

/** Database work that has to succeed some day. */
export const settlements = proxyActivities<SettlementActivities & DeadLetterActivities>(control);

/** Some seconds of a purge; the timeline tells how far it is. */
export function purgeActivity(summary: string): RetentionActivities {
  return proxyActivities<RetentionActivities>({ ...control, summary });
}

/** Comparisons and repairs in Postgres. */
export const reconciliation = proxyActivities<Omit<ReconcileActivities, 'compareWorkflows'>>(control);

/** A server that can't list is asked no more than this often. */
export const comparisons = proxyActivities<Pick<ReconcileActivities, 'compareWorkflows'>>({
  ...control,
  startToCloseTimeout: '2m',
  retry: { ...control.retry, maximumAttempts: 3 },
});
