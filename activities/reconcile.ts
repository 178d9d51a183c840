import type { ComparedRows, CompareInput, ReconcileActivities } from './contracts/reconcile-activities.js';
import type { ActivityDependencies } from './ports.js';
import { type Findings, mergeFindings, totalOf } from '../src/domain/findings.js';
import { pause } from '../src/pause.js';

/** Well within the activity's 30 s. */
const workMs = 12_000;
/** Of the workflows that were started since the last run. */
const mostWorkflows = 20_000;
const shown = 10;

export function createReconcileActivities({
  reconciliation,
  deliveryRuns,
  now,
  log,
}: ActivityDependencies): ReconcileActivities {
  /** Batch after batch for some seconds, resting as long as it works. */
  async function forAWhile(
    input: CompareInput,
    compare: (input: CompareInput) => Promise<ComparedRows>,
  ): Promise<ComparedRows> {
    const until = now() + workMs;
    let all: ComparedRows = { examined: 0, after: input.after, ...nothingFound };
    for (;;) {
      const startedAt = now();
      const some = await compare({ from: input.from, after: all.after });
      all = { examined: all.examined + some.examined, after: some.after, ...mergeFindings(all, some) };
      if (all.after === null || now() >= until) return all;
      await pause(now() - startedAt);
    }
  }

  return {
    planReconciliation: () => reconciliation.plan(),
    repairWaiting: () => reconciliation.repairWaiting(),
    compareDeliveries: (input) => forAWhile(input, (some) => reconciliation.compareDeliveries(some)),
    compareEvents: (input) => forAWhile(input, (some) => reconciliation.compareEvents(some)),
    async compareWorkflows({ from }) {
      const runs = await deliveryRuns.startedSince(new Date(from), mostWorkflows);
      const unknown: string[] = [];
      for (let at = 0; at < runs.length; at += 1_000)
        unknown.push(...(await reconciliation.unknownDeliveries(runs.slice(at, at + 1_000))));
      return {
        examined: runs.length,
        cut: runs.length >= mostWorkflows,
        unknown: unknown.length,
        examples: unknown.slice(0, shown),
      };
    },
    async keepReport(report) {
      await reconciliation.keep(report);
      const { gaps, repaired, examples, examined } = report;
      if (totalOf(gaps) + totalOf(repaired) === 0) log.info({ examined }, 'reconciled: nothing is missing');
      else log.warn({ gaps, repaired, examples, examined }, 'reconciled: something was missing');
    },
  };
}

const nothingFound: Findings = { repaired: {}, gaps: {}, examples: {} };
