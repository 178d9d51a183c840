import { type Client, WorkflowNotFoundError } from '@temporalio/client';

/** What one delivery costs Temporal. A delivery without a workflow costs it nothing. */
export interface WorkflowCounters {
  readonly stateTransitions: number;
  readonly historyEvents: number;
}

/** The mean of these workflows. */
export async function countWorkflows(client: Client, ids: readonly string[]): Promise<WorkflowCounters | null> {
  if (ids.length === 0) return null;
  let [stateTransitions, historyEvents] = [0, 0];
  for (const id of ids) {
    try {
      const { raw } = await client.workflow.getHandle(id).describe();
      stateTransitions += Number(raw.workflowExecutionInfo?.stateTransitionCount ?? 0);
      historyEvents += Number(raw.workflowExecutionInfo?.historyLength ?? 0);
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }
  return { stateTransitions: stateTransitions / ids.length, historyEvents: historyEvents / ids.length };
}
