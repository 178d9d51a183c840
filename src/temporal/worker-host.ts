import { DefaultLogger, makeTelemetryFilterString, Runtime, Worker, type NativeConnection } from '@temporalio/worker';
import { fileURLToPath } from 'node:url';
import type { ActivityFamilies } from '../../activities/index.js';
import { taskQueues } from '../../workflows/contracts/names.js';
import type { Logger } from '../telemetry/logger.js';
import type { SlotUse } from '../telemetry/metrics-page.js';

/** Made by the build; a missing bundle is an error, never a reason to bundle at run time. */
export const defaultBundlePath = fileURLToPath(new URL('../../workflow-bundle.js', import.meta.url));

export interface WorkerHostOptions {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly activities: ActivityFamilies;
  readonly maxConcurrentAttempts: number;
  readonly log: Logger;
  readonly bundlePath?: string;
}

/** Longer than any attempt: what is in flight at a shutdown finishes and is recorded. */
export const shutdownGraceMs = 35_000;

/**
 * What the SDK warns of and nobody needs to hear: its code for a workflow task of more than 5 s (a first attempt at a slow endpoint),
 * a worker for attempts only, and workflows that end as dead letters, which are announced as such.
 */
const noNews = ['TMPRL1104', 'No workflows registered', 'Workflow failed'];

/** One owner of signals: ours, not the SDK's. Call once, before anything else of the SDK. */
export function installRuntime(log: Logger): void {
  Runtime.install({
    shutdownSignals: [],
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }), forward: {} } },
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      if (noNews.some((text) => message.includes(text))) return;
      const { error: err, ...rest } = meta ?? {};
      // Under `err` the logger writes an error's type and message; elsewhere it would be {}.
      const fields = err === undefined ? rest : { ...rest, err: err as unknown };
      if (level === 'ERROR') log.error(fields, message);
      else log.warn(fields, message);
    }),
  });
}

/** All the rest beside attempts is short, or waits for somebody outside. */
export const controlSlots = 50;
/** A local activity holds its workflow's slot: others must find one all the same. */
const spareWorkflowSlots = 50;

/** The three workers of a process: one a task queue, so that nothing waits behind hanging attempts. */
export class WorkerHost {
  private constructor(
    private readonly workers: readonly Worker[],
    private readonly workflowSlots: ReadonlyMap<string, number>,
    private readonly running: Promise<unknown>,
  ) {}

  static async start(options: WorkerHostOptions): Promise<WorkerHost> {
    const { connection, namespace, activities, maxConcurrentAttempts } = options;
    const workflowBundle = { codePath: options.bundlePath ?? defaultBundlePath };
    const common = {
      connection,
      namespace,
      shutdownGraceTime: shutdownGraceMs,
      shutdownForceTime: shutdownGraceMs + 5_000,
    };
    const workers = await Promise.all([
      Worker.create({
        ...common,
        taskQueue: taskQueues.deliver,
        workflowBundle,
        activities: { ...activities.deliver },
        maxConcurrentLocalActivityExecutions: maxConcurrentAttempts,
        maxConcurrentWorkflowTaskExecutions: maxConcurrentAttempts + spareWorkflowSlots,
        maxConcurrentActivityTaskExecutions: 1,
      }),
      Worker.create({
        ...common,
        taskQueue: taskQueues.attempts,
        activities: { ...activities.attempts },
        maxConcurrentActivityTaskExecutions: maxConcurrentAttempts,
      }),
      Worker.create({
        ...common,
        taskQueue: taskQueues.control,
        workflowBundle,
        activities: { ...activities.control },
        maxConcurrentActivityTaskExecutions: controlSlots,
        maxConcurrentWorkflowTaskExecutions: controlSlots,
      }),
    ]);
    const running = Promise.all(workers.map((worker) => worker.run()));
    // Awaited by `stopped`; a failure before that is reported there.
    running.catch(() => undefined);
    const workflowSlots = new Map<string, number>([
      [taskQueues.deliver, maxConcurrentAttempts + spareWorkflowSlots],
      [taskQueues.control, controlSlots],
    ]);
    return new WorkerHost(workers, workflowSlots, running);
  }

  /** Slots for workflow tasks. A local activity holds the one of its workflow for as long as it runs. */
  slotUse(): readonly SlotUse[] {
    return this.workers.flatMap((worker) => {
      const { taskQueue } = worker.options;
      const limit = this.workflowSlots.get(taskQueue);
      if (limit === undefined) return [];
      const { numInFlightWorkflowActivations, numInFlightLocalActivities } = worker.getStatus();
      const used = numInFlightWorkflowActivations + numInFlightLocalActivities;
      return [{ taskQueue, kind: 'workflow_task', used, limit } as const];
    });
  }

  /** Resolves after a shutdown; rejects when a worker failed, which ends the process. */
  get stopped(): Promise<unknown> {
    return this.running;
  }

  /** Takes no new work, lets what is in flight finish. */
  async stop(): Promise<void> {
    for (const worker of this.workers) {
      if (worker.getState() === 'RUNNING') worker.shutdown();
    }
    await this.running;
  }
}
