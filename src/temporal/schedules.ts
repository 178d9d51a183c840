import { type Client, ScheduleAlreadyRunning, type ScheduleOptions } from '@temporalio/client';
import { scheduleIds, taskQueues, workflowTypes } from '../../workflows/contracts/names.js';
import { pause } from '../pause.js';
import type { Logger } from '../telemetry/logger.js';
import type { TemporalConnection } from './connection.js';

const schedules: readonly ScheduleOptions[] = [
  { scheduleId: scheduleIds.purge, every: '1h', type: workflowTypes.purge },
  { scheduleId: scheduleIds.reconcile, every: '10m', type: workflowTypes.reconcile },
].map(({ scheduleId, every, type }) => ({
  scheduleId,
  spec: { intervals: [{ every: every as '1h' }] },
  action: {
    type: 'startWorkflow',
    workflowType: type,
    workflowId: scheduleId,
    taskQueue: taskQueues.control,
    args: [],
  },
  policies: { overlap: 'SKIP', catchupWindow: '1m' },
}));

const lookAgainMs = 5 * 60_000;
const firstWaitMs = 1_000;

/**
 * Keeps the schedules in Temporal as they are meant to be: written at the start, and again where a store was lost. What an
 * operator sets there, such as a pause, stays.
 */
export class ScheduleKeeper {
  private readonly abort = new AbortController();
  private loop: Promise<void> = Promise.resolve();

  constructor(
    private readonly connection: TemporalConnection,
    private readonly log: Logger,
  ) {}

  start(): void {
    this.loop = this.run();
  }

  async stop(): Promise<void> {
    this.abort.abort();
    await this.loop;
  }

  private async run(): Promise<void> {
    const { signal } = this.abort;
    let written = false;
    let waitMs = firstWaitMs;
    while (!signal.aborted) {
      try {
        const { client } = this.connection;
        if (client) {
          await writeSchedules(client, { update: !written });
          written = true;
          waitMs = firstWaitMs;
        }
      } catch (error) {
        // A server without schedules never gets any: purge and reconcile can be started by hand.
        this.log.warn({ err: error }, 'the schedules of purge and reconcile could not be written; trying again');
        waitMs = Math.min(waitMs * 2, lookAgainMs);
      }
      await pause(written ? lookAgainMs : waitMs, signal);
    }
  }
}

/** `update`: those that are there get the settings of this version. */
export async function writeSchedules(client: Client, { update }: { readonly update: boolean }): Promise<void> {
  for (const schedule of schedules) {
    try {
      await client.schedule.create(schedule);
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
      if (!update) continue;
      const { spec, action, policies } = schedule;
      await client.schedule
        .getHandle(schedule.scheduleId)
        .update((now) => ({ ...now, spec, action, ...(policies ? { policies } : {}) }));
    }
  }
}
