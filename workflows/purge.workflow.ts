import { continueAsNew, defineQuery, setHandler, workflowInfo } from '@temporalio/workflow';
import { type PurgeInput, purgeQueries, purgeSteps, type PurgeState } from './contracts/purge.js';
import { purgeActivity } from './support/activities.js';

export const state = defineQuery<PurgeState>(purgeQueries.state);

/** With this many events the workflow continues as new, in the middle of a step too. */
const historyLimit = 1_000;

/** Removes what was kept long enough, step by step and some rows at a time. Started by a schedule, or by hand without input. */
export async function purge(input?: PurgeInput): Promise<PurgeState['removed']> {
  let view: PurgeState = input?.state ?? { step: null, after: null, removed: nothingRemoved() };
  setHandler(state, () => view);
  const first = view.step === null ? 0 : purgeSteps.indexOf(view.step);
  for (const step of purgeSteps.slice(first)) {
    let after = view.step === step ? view.after : null;
    do {
      const removed = view.removed[step];
      const some = await purgeActivity(`${step}, ${removed} so far`).purgeSome({ step, after });
      after = some.after;
      view = { step, after, removed: { ...view.removed, [step]: removed + some.removed } };
      const { historyLength, continueAsNewSuggested } = workflowInfo();
      if (after !== null && (continueAsNewSuggested || historyLength > historyLimit))
        await continueAsNew<typeof purge>({ state: view });
    } while (after !== null);
  }
  view = { ...view, step: null, after: null };
  return view.removed;
}

function nothingRemoved(): PurgeState['removed'] {
  return Object.fromEntries(purgeSteps.map((step) => [step, 0])) as PurgeState['removed'];
}
