import type { SlotUse } from './metrics-page.js';

/** Counts activities at work, by task queue: each holds one of its worker's slots. */
export class SlotCounter {
  private readonly queues = new Map<string, { used: number; readonly limit: number | null }>();

  /** The same activities, counted. `limit`: the slots that the worker has for them; null where that is no setting. */
  watch<Activities extends object>(taskQueue: string, activities: Activities, limit: number | null): Activities {
    const queue = { used: 0, limit };
    this.queues.set(taskQueue, queue);
    const counted = Object.entries(activities).map(([name, run]: [string, (...args: unknown[]) => unknown]) => [
      name,
      async (...args: unknown[]) => {
        queue.used += 1;
        try {
          return await run(...args);
        } finally {
          queue.used -= 1;
        }
      },
    ]);
    return Object.fromEntries(counted) as Activities;
  }

  read(): readonly SlotUse[] {
    return [...this.queues].map(([taskQueue, { used, limit }]) => ({ taskQueue, used, limit }));
  }
}
