import { type ActivityFamilies, createActivities } from '../activities/index.js';
import type { ActivityDependencies } from '../activities/ports.js';
import { taskQueues } from '../workflows/contracts/names.js';
import type { Core } from './core.js';
import { pause } from './pause.js';
import { registerSearchAttributes, SearchAttributeTypeError } from './temporal/search-attributes.js';
import { ScheduleKeeper } from './temporal/schedules.js';
import { WorkerHost } from './temporal/worker-host.js';

/** The workers of a process. They start once Temporal is connected, and stop after their attempts have been recorded. */
export class WorkerProcess {
  private host: WorkerHost | null = null;
  private stopping = false;
  private readonly schedules: ScheduleKeeper;

  constructor(
    private readonly core: Core,
    private readonly bundlePath?: string,
  ) {
    this.schedules = new ScheduleKeeper(core.temporal, core.options.log);
  }

  /** Resolves once the workers poll. */
  async start(): Promise<void> {
    const { core } = this;
    const { config, log } = core.options;
    await core.temporal.ready();
    const { native, client, namespace } = core.temporal;
    if (!native || !client) throw new Error('workers need a native connection');
    await this.prepareNamespace();
    if (this.stopping) return;
    this.host = await WorkerHost.start({
      connection: native,
      namespace,
      activities: this.counted({
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
        announcer: core.announcer,
        secrets: core.secrets,
        settings: config.delivery,
        log,
        watch: {
          startAttempt: (facts) => core.tracing.startAttempt(facts),
          attemptRecorded: (attempt) => core.metrics.attemptRecorded(attempt),
          deliveryClosed: (status, reason) => core.metrics.deliveryClosed(status, reason),
        },
        now: Date.now,
      }),
      maxConcurrentAttempts: config.delivery.maxConcurrentAttempts,
      log,
      ...(this.bundlePath === undefined ? {} : { bundlePath: this.bundlePath }),
    });
    this.schedules.start();
    log.info({ namespace }, 'workers poll');
  }

  /** Rejects when a worker fails. Pending for ever where none has started. */
  get failed(): Promise<unknown> {
    return this.host ? this.host.stopped : new Promise(() => undefined);
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await this.schedules.stop();
    await this.host?.stop();
  }

  private counted(deps: ActivityDependencies): ActivityFamilies {
    const { slots, options } = this.core;
    const { maxConcurrentAttempts } = options.config.delivery;
    const { deliver, attempts, control } = createActivities(deps);
    return {
      deliver: slots.watch(taskQueues.deliver, deliver, maxConcurrentAttempts),
      attempts: slots.watch(taskQueues.attempts, attempts, maxConcurrentAttempts),
      control: slots.watch(taskQueues.control, control, null),
    };
  }

  /** The search attributes are there, with their types, before the first start needs them. */
  private async prepareNamespace(): Promise<void> {
    const { temporal, options } = this.core;
    for (let waitMs = 250; !this.stopping; waitMs = Math.min(waitMs * 2, 5_000)) {
      try {
        if (temporal.client) await registerSearchAttributes(temporal.client, temporal.namespace, options.log);
        return;
      } catch (error) {
        if (error instanceof SearchAttributeTypeError) throw error;
        options.log.warn({ err: error }, 'the namespace is not ready; trying again');
        await pause(waitMs);
      }
    }
  }
}
