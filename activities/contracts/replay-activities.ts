import type { ReplayStatus, ReplayWish } from '../../src/domain/replays.js';

export interface ReplayBatchInput {
  readonly replayId: string;
}

export type ReplayBatch =
  | { readonly kind: 'unknown_replay' }
  | {
      readonly kind: 'started';
      /** As it is now, whoever changed it. */
      readonly status: ReplayStatus;
      readonly total: number;
      readonly started: number;
      readonly skipped: number;
      readonly ratePerSecond: number;
      /** Milliseconds until the rate allows the next one. */
      readonly waitMs: number;
    };

export interface ReplayChangeInput {
  readonly replayId: string;
  readonly wish: ReplayWish;
}

/** Ordinary activities on `posthorn-control`. */
export interface ReplayActivities {
  /** Starts what the rate allows, for some seconds; each item at most once, however often and wherever this runs. */
  startReplayBatch(input: ReplayBatchInput): Promise<ReplayBatch>;
  /** Writes down what somebody wants by a signal; without effect on a replay that is at its end. */
  changeReplay(input: ReplayChangeInput): Promise<void>;
}
