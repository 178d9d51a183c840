import type { WorkflowInfo } from '@temporalio/workflow';
import type { AttemptIntent } from '../../activities/contracts/delivery-activities.js';
import { startedByMemo } from '../contracts/names.js';

/** Machine starts carry a memo; "Start workflow like this one" and the CLI don't copy it. */
export function startedByMachine(info: WorkflowInfo): boolean {
  return info.memo?.[startedByMemo] !== undefined;
}

/** What this run may do with a closed row: starts by machine never redeliver, people and resets do. */
export function attemptIntent(info: WorkflowInfo): AttemptIntent {
  if (info.continuedFromExecutionRunId !== undefined) return 'resume';
  // A reset keeps the first run's id, and the memo too.
  if (info.firstExecutionRunId !== info.runId) return 'reset';
  return startedByMachine(info) ? 'resume' : 'redeliver';
}
