import {
  ApplicationFailure,
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  patched,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import { isEndpointId } from '../src/domain/ids.js';
import {
  deadLetterQueueQueries,
  deadLetterQueueSignals,
  type DeadLetterQueueInput,
  type DeadLetterQueueState,
} from './contracts/dead-letter-queue.js';
import { deadLetterQueueWorkflowId } from './contracts/names.js';
import { settlements } from './support/activities.js';
import { patches } from './support/patches.js';

export const letterAdded = defineSignal(deadLetterQueueSignals.letterAdded);
export const state = defineQuery<DeadLetterQueueState>(deadLetterQueueQueries.state);

/** With nothing new for a day the queue's workflow ends; the next letter starts it again. */
const idleMs = 24 * 60 * 60 * 1_000;
/** Bounded histories: with this many events the workflow continues as new, in the middle of a window too. */
const historyLimit = 2_000;
const isFull = (): boolean => {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || historyLength > historyLimit;
};

/** One per endpoint with letters: groups alerts, one per endpoint and window. Which letters there are is Postgres's to know. */
export async function deadLetterQueue(input: DeadLetterQueueInput): Promise<DeadLetterQueueState> {
  const boundedWindows = patched(patches.boundedWindows.id);
  if (boundedWindows) checkInput(input);
  let signalled = true;
  let view: DeadLetterQueueState = input.state ?? {
    announcements: 0,
    lettersAnnounced: 0,
    openLetters: 0,
    lastAnnouncedAt: null,
  };
  let windowEndsAtMs: number | undefined = input.windowEndsAtMs;
  setHandler(letterAdded, () => void (signalled = true));
  setHandler(state, () => view);
  for (;;) {
    if (windowEndsAtMs === undefined) {
      if (!(await condition(() => signalled, idleMs))) return view;
      // The first letter is announced at once, those that follow within the window together.
      signalled = false;
      const { announced, open } = await settlements.announceDeadLetters({ endpointId: input.endpointId });
      view = {
        announcements: view.announcements + (announced > 0 ? 1 : 0),
        lettersAnnounced: view.lettersAnnounced + announced,
        openLetters: open,
        lastAnnouncedAt: announced > 0 ? new Date().toISOString() : view.lastAnnouncedAt,
      };
      windowEndsAtMs = Date.now() + input.windowMs;
    }
    if (boundedWindows) {
      const leftMs = windowEndsAtMs - Date.now();
      const isCut =
        leftMs > 0 &&
        (await condition(isFull, leftMs, { summary: 'letters that come now wait for the next announcement' }));
      if (!isCut) windowEndsAtMs = undefined;
    } else {
      await sleep(input.windowMs);
      windowEndsAtMs = undefined;
    }
    if (isFull()) {
      await condition(allHandlersFinished);
      const { endpointId, windowMs } = input;
      await continueAsNew<typeof deadLetterQueue>({
        endpointId,
        windowMs,
        state: view,
        ...(windowEndsAtMs === undefined ? {} : { windowEndsAtMs }),
      });
    }
  }
}

/** A bad input fails the run by name: it would be tried for ever otherwise. */
function checkInput(input: DeadLetterQueueInput | undefined): void {
  const endpointId: unknown = input?.endpointId;
  const windowMs: unknown = input?.windowMs;
  const good =
    typeof endpointId === 'string' &&
    isEndpointId(endpointId) &&
    workflowInfo().workflowId === deadLetterQueueWorkflowId(endpointId) &&
    typeof windowMs === 'number' &&
    Number.isFinite(windowMs) &&
    windowMs >= 0;
  if (good) return;
  throw ApplicationFailure.create({
    type: 'InvalidInput',
    message:
      'Nothing was done: the input must be {"endpointId": "we_…", "windowMs": 60000}, and the workflow id dead-letter-queue/<endpointId>',
    nonRetryable: true,
  });
}
