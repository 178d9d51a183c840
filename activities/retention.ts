import type { PurgeSomeResult, RetentionActivities } from './contracts/retention-activities.js';
import type { ActivityDependencies } from './ports.js';
import { pause } from '../src/pause.js';

/** Well within the activity's 30 s. */
const workMs = 12_000;
const shortestPauseMs = 10;

export function createRetentionActivities({
  retention,
  now,
}: Pick<ActivityDependencies, 'retention' | 'now'>): RetentionActivities {
  return {
    async purgeSome({ step, after }): Promise<PurgeSomeResult> {
      const until = now() + workMs;
      let removed = 0;
      for (let at = after; ;) {
        const startedAt = now();
        const batch = await retention.purge(step, at);
        removed += batch.removed;
        at = batch.after;
        if (at === null || now() >= until) return { removed, after: at };
        // It rests as long as it has worked: those who deliver get at least half of the database.
        await pause(Math.max(shortestPauseMs, now() - startedAt));
      }
    },
  };
}
