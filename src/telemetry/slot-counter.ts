import type { SlotUse } from './metrics-page.js';

/** What holds slots of this process's workers: activities at work, counted here, and what others tell of. */
export class SlotCounter {
  private readonly queues = new Map<string, { used: number; readonly limit: number }>();
  private readonly others: (() => readonly SlotUse[])[] = [];

  /** The same activities, counted. `limit`: the slots that the worker has for them. */
  watch<Activities extends object>(taskQueue: string, activities: Activities, limit: number): Activities {
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

  addSource(read: () => readonly SlotUse[]): void {
    this.others.push(read);
  }

  read(): readonly SlotUse[] {
    const activities = [...this.queues].map(
      ([taskQueue, { used, limit }]) => ({ taskQueue, kind: 'activity', used, limit }) as const,
    );
    return [...activities, ...this.others.flatMap((read) => read())];
  }
}
