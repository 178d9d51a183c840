import type { SettlementActivities } from './contracts/delivery-activities.js';
import type { AttemptRunner } from './attempt-runner.js';
import type { ActivityDependencies } from './ports.js';

/** What remains to be written when an attempt's own activity couldn't; retried by Temporal until Postgres answers. */
export function createSettlementActivities(deps: ActivityDependencies, runner: AttemptRunner): SettlementActivities {
  return {
    recordAttempt: (input) => runner.recordSent(input),
    settleAttempt: (input) => runner.settle(input),
    cancelDelivery: (input) => deps.deliveries.cancelFromWorkflow(input),
    requestCancellation: (input) => deps.announcer.cancelRun(input.deliveryId, input.runId),
  };
}
