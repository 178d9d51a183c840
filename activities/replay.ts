import type { ReplayedDelivery, ReplayStep } from '../src/database/replay-store.js';
import { pause } from '../src/pause.js';
import type { ReplayActivities } from './contracts/replay-activities.js';
import type { ActivityDependencies } from './ports.js';

/** So long one activity goes on: a replay of thousands has a history of hundreds of events. A stopping worker waits for it. */
const batchMs = 5_000;
/** Between two statements of a batch, so that the rate is even and a pause is seen soon. */
const stepMs = 250;
const concurrency = 16;

export function createReplayActivities({
  replays,
  starter,
  log,
  now,
}: Pick<ActivityDependencies, 'replays' | 'starter' | 'log' | 'now'>): ReplayActivities {
  /** What isn't started here, the sweeper starts: it is written already, and must not be waited for where Temporal is away. */
  async function startAll(replayId: string, deliveries: readonly ReplayedDelivery[]): Promise<void> {
    const queue = [...deliveries];
    const work = async (): Promise<void> => {
      for (let delivery = queue.shift(); delivery; delivery = queue.shift())
        await starter.startDelivery(delivery, 'replay', 'again');
    };
    try {
      await Promise.all(Array.from({ length: Math.min(concurrency, queue.length) }, work));
    } catch (error) {
      log.debug({ replay_id: replayId, left: queue.length, err: error }, 'deliveries are left to the sweeper');
      queue.length = 0;
    }
  }

  return {
    async startReplayBatch({ replayId }) {
      const deadline = now() + batchMs;
      for (;;) {
        const step = await replays.startSome(replayId);
        if (!step) return { kind: 'unknown_replay' };
        await startAll(replayId, step.deliveries);
        const waitMs = Math.max(step.waitMs, stepMs);
        if (step.status !== 'running' || now() + waitMs >= deadline) return toBatch(step);
        await pause(waitMs);
      }
    },
    async changeReplay({ replayId, wish }) {
      await replays.change(replayId, wish, null);
    },
  };
}

function toBatch({ status, total, started, skipped, ratePerSecond, waitMs }: ReplayStep) {
  return { kind: 'started', status, total, started, skipped, ratePerSecond, waitMs } as const;
}
