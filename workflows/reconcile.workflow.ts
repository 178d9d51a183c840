import type {
  ComparedRows,
  CompareInput,
  ComparedWorkflows,
  LostDeliveries,
  ReconcileReport,
} from '../activities/contracts/reconcile-activities.js';
import { mergeFindings } from '../src/domain/findings.js';
import { comparisons, reconciliation } from './support/activities.js';

/** So many calls of some seconds each: the next run goes on where this one stops. */
const mostCalls = 10;

/**
 * Compares what was accepted with what became of it, repairs what is safe to repair, and reports the rest. Started by a schedule,
 * or by hand without input; the result is the report.
 */
export async function reconcile(): Promise<ReconcileReport> {
  const plan = await reconciliation.planReconciliation();
  const { from } = plan;
  const waiting = await reconciliation.repairWaiting();
  const deliveries = await walk({ from, after: plan.deliveriesAfter }, (input) =>
    reconciliation.compareDeliveries(input),
  );
  const events = await walk({ from, after: plan.eventsAfter }, (input) => reconciliation.compareEvents(input));
  const workflows = await compareWorkflows(plan.workflowsFrom);
  const unknown = workflows?.unknown ?? 0;
  const lost: LostDeliveries | null =
    workflows && unknown > 0 ? { foundAt: plan.startedAt, count: unknown, examples: workflows.examples } : null;
  const found = mergeFindings(waiting, mergeFindings(deliveries, events));
  const report: ReconcileReport = {
    startedAt: plan.startedAt,
    finishedAt: new Date().toISOString(),
    from,
    examined: { deliveries: deliveries.examined, events: events.examined, workflows: workflows?.examined ?? null },
    repaired: found.repaired,
    gaps: lost ? { ...found.gaps, workflow_without_delivery: lost.count } : found.gaps,
    examples: lost ? { ...found.examples, workflow_without_delivery: lost.examples } : found.examples,
    deliveriesAfter: deliveries.after,
    eventsAfter: events.after,
    workflowsCut: workflows?.cut ?? false,
    lost: lost ?? plan.lost,
  };
  await reconciliation.keepReport(report);
  return report;
}

async function walk(
  input: CompareInput,
  compare: (input: CompareInput) => Promise<ComparedRows>,
): Promise<ComparedRows> {
  let all = await compare(input);
  for (let calls = 1; all.after !== null && calls < mostCalls; calls += 1) {
    const some = await compare({ from: input.from, after: all.after });
    all = { examined: all.examined + some.examined, after: some.after, ...mergeFindings(all, some) };
  }
  return all;
}

/** Null where Temporal doesn't list: all the rest is worth a report without it. */
async function compareWorkflows(from: string): Promise<ComparedWorkflows | null> {
  try {
    return await comparisons.compareWorkflows({ from });
  } catch {
    return null;
  }
}
