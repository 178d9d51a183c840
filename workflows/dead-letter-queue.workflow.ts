import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import {
  deadLetterQueueQueries,
  deadLetterQueueSignals,
  type DeadLetterQueueInput,
  type DeadLetterQueueState,
} from './contracts/dead-letter-queue.js';
import { settlements } from './support/activities.js';

export const letterAdded = defineSignal(deadLetterQueueSignals.letterAdded);
export const state = defineQuery<DeadLetterQueueState>(deadLetterQueueQueries.state);

/** With nothing new for a day the queue's workflow ends; the next letter starts it again. */
const idleMs = 24 * 60 * 60 * 1_000;

/** One per endpoint with letters: groups alerts, one per endpoint and window. Which letters there are is Postgres's to know. */
export async function deadLetterQueue(input: DeadLetterQueueInput): Promise<DeadLetterQueueState> {
  let signalled = true;
  let view: DeadLetterQueueState = input.state ?? {
    announcements: 0,
    lettersAnnounced: 0,
    openLetters: 0,
    lastAnnouncedAt: null,
  };
  setHandler(letterAdded, () => void (signalled = true));
  setHandler(state, () => view);
  for (;;) {
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
    await sleep(input.windowMs);
    if (workflowInfo().continueAsNewSuggested || workflowInfo().historyLength > 2_000) {
      await condition(allHandlersFinished);
      await continueAsNew<typeof deadLetterQueue>({ ...input, state: view });
    }
  }
}
