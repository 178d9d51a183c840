import type { ActivityDependencies } from '../activities/ports.js';
import type { Core } from './core.js';
import { OpenedTexts } from './security/opened-texts.js';

/** What attempts and all other activities work with, whoever runs them: a worker, or the express lane. */
export function activityDependencies(core: Core): ActivityDependencies {
  const { config, log } = core.options;
  return {
    attempts: core.attempts,
    deliveries: core.deliveries,
    waiting: core.waiting,
    letters: core.letters,
    paces: core.paces,
    health: core.health,
    notices: core.notices,
    replays: core.replays,
    starter: core.gateway,
    retention: core.retention,
    reconciliation: core.reconciliation,
    deliveryRuns: core.deliveryRuns,
    mailer: core.mailer,
    caller: core.caller,
    sender: core.sender,
    payloads: core.payloads,
    announcer: core.announcer,
    secrets: new OpenedTexts(core.secrets),
    settings: config.delivery,
    log,
    watch: {
      startAttempt: (facts) => core.tracing.startAttempt(facts),
      attemptRecorded: (attempt) => core.metrics.attemptRecorded(attempt),
      attemptNotSent: (cause) => core.metrics.attemptNotSent(cause),
      deliveryClosed: (status, reason) => core.metrics.deliveryClosed(status, reason),
    },
    now: Date.now,
  };
}
