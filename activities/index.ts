import { Context } from '@temporalio/activity';
import type { DeadLetterActivities } from './contracts/dead-letter-activities.js';
import type {
  AttemptActivities,
  FirstAttemptActivities,
  SettlementActivities,
} from './contracts/delivery-activities.js';
import { AttemptRunner } from './attempt-runner.js';
import { createDeadLetterActivities } from './dead-letters.js';
import type { EndpointCallActivities, HealthActivities } from './contracts/endpoint-health-activities.js';
import { createEndpointCallActivities, createHealthActivities } from './endpoint-health.js';
import type { ReplayActivities } from './contracts/replay-activities.js';
import { createReplayActivities } from './replay.js';
import type { ReconcileActivities } from './contracts/reconcile-activities.js';
import { createReconcileActivities } from './reconcile.js';
import type { RetentionActivities } from './contracts/retention-activities.js';
import { createRetentionActivities } from './retention.js';
import { createSettlementActivities } from './settlements.js';
import type { ActivityDependencies } from './ports.js';

/** The only effects that workflows can cause, grouped by the task queue whose workers run them. */
export interface ActivityFamilies {
  /** Local, beside the `deliver` workflow. */
  readonly deliver: FirstAttemptActivities;
  readonly attempts: AttemptActivities & EndpointCallActivities;
  readonly control: SettlementActivities &
    DeadLetterActivities &
    HealthActivities &
    ReplayActivities &
    RetentionActivities &
    ReconcileActivities;
}

/** Well below the 10 s after which a silent worker is taken for dead. */
const heartbeatEveryMs = 3_000;

export function createActivities(deps: ActivityDependencies): ActivityFamilies {
  const runner = new AttemptRunner(deps);
  const calls = createEndpointCallActivities(deps);
  return {
    deliver: { firstAttempt: (input) => runner.run(input, 'local') },
    attempts: {
      attempt: (input) => whileHeartbeating(() => runner.run(input, 'ordinary')),
      verifyEndpoint: (input) => whileHeartbeating(() => calls.verifyEndpoint(input)),
      pingEndpoint: (input) => whileHeartbeating(() => calls.pingEndpoint(input)),
      probeEndpoint: (input) => whileHeartbeating(() => calls.probeEndpoint(input)),
      sendMail: (input) => whileHeartbeating(() => calls.sendMail(input)),
    },
    control: {
      ...createSettlementActivities(deps, runner),
      ...createDeadLetterActivities(deps),
      ...createHealthActivities(deps),
      ...createReplayActivities(deps),
      ...createRetentionActivities(deps),
      ...createReconcileActivities(deps),
    },
  };
}

/** A heartbeat says "alive"; what comes back with it (cancellation, time-outs) never aborts a request in flight. */
async function whileHeartbeating<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), heartbeatEveryMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
