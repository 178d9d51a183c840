import type { ReplayStatus } from '../../src/domain/replays.js';

/** The replay's id alone, so that anybody can start the workflow from the Web UI or the CLI. */
export interface ReplayInput {
  readonly replayId: string;
}

/** `pause`, `resume` and `cancel` do by hand what the API does. `wake` carries nothing: Postgres knows what changed. */
export const replaySignals = { pause: 'pause', resume: 'resume', cancel: 'cancel', wake: 'wake' } as const;
export const replayQueries = { progress: 'progress' } as const;

/** Answer of the `progress` query, for the Web UI; also what the workflow returns. */
export interface ReplayProgress {
  readonly status: ReplayStatus | 'unknown';
  readonly total: number;
  readonly started: number;
  readonly skipped: number;
  readonly waiting: number;
  readonly ratePerSecond: number;
}
