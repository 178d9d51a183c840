import {
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  isCancellation,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { isReplayId } from '../src/domain/ids.js';
import { isAtItsEnd, type ReplayWish } from '../src/domain/replays.js';
import { replayWorkflowId } from './contracts/names.js';
import { type ReplayInput, type ReplayProgress, replayQueries, replaySignals } from './contracts/replay.js';
import { replays } from './support/activities.js';

export const pause = defineSignal(replaySignals.pause);
export const resume = defineSignal(replaySignals.resume);
export const cancel = defineSignal(replaySignals.cancel);
export const wake = defineSignal(replaySignals.wake);
export const progress = defineQuery<ReplayProgress>(replayQueries.progress);

/** Bounded histories: with this many events the workflow continues as new, between two batches. */
const historyLimit = 2_000;

/** One bulk replay. Postgres knows the set, what was started, and the rate; this workflow goes on until nothing is left. */
export async function replay(input: ReplayInput): Promise<ReplayProgress> {
  checkInput(input);
  const { replayId } = input;
  const wishes: ReplayWish[] = [];
  let isWoken = false;
  let view: ReplayProgress = { status: 'unknown', total: 0, started: 0, skipped: 0, waiting: 0, ratePerSecond: 0 };
  setHandler(pause, () => void wishes.push('pause'));
  setHandler(resume, () => void wishes.push('resume'));
  setHandler(cancel, () => void wishes.push('cancel'));
  setHandler(wake, () => void (isWoken = true));
  setHandler(progress, () => view);
  try {
    for (;;) {
      for (let wish = wishes.shift(); wish; wish = wishes.shift()) await replays.changeReplay({ replayId, wish });
      isWoken = false;
      const batch = await replays.startReplayBatch({ replayId });
      if (batch.kind === 'unknown_replay') throw invalidInput('there is no such replay');
      const { status, total, started, skipped, ratePerSecond, waitMs } = batch;
      view = { status, total, started, skipped, waiting: total - started - skipped, ratePerSecond };
      if (isAtItsEnd(status)) return view;
      if (isFull() && wishes.length === 0) {
        await condition(allHandlersFinished);
        await continueAsNew<typeof replay>(input);
      }
      const isCalled = (): boolean => isWoken || wishes.length > 0;
      if (status === 'paused') await condition(isCalled);
      else if (waitMs > 0)
        await condition(isCalled, waitMs, { summary: `${started + skipped} of ${total}, then the next` });
    }
  } catch (error) {
    // Temporal's own cancellation means the same as the signal.
    if (isCancellation(error))
      await CancellationScope.nonCancellable(() => replays.changeReplay({ replayId, wish: 'cancel' }));
    throw error;
  }
}

function isFull(): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || historyLength > historyLimit;
}

/** A bad input fails the run by name: it would be tried for ever otherwise. */
function checkInput(input: ReplayInput | undefined): void {
  const replayId: unknown = input?.replayId;
  const isGood =
    typeof replayId === 'string' && isReplayId(replayId) && workflowInfo().workflowId === replayWorkflowId(replayId);
  if (!isGood) throw invalidInput('the input must be {"replayId": "rpl_…"}, and the workflow id replay/<replayId>');
}

function invalidInput(why: string): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'InvalidInput',
    message: `Nothing was done: ${why}`,
    nonRetryable: true,
  });
}
