import type { Client } from '@temporalio/client';
import { until } from './posthorn.js';

/** Waits until the latest run of a workflow has this status, as an operator reads it in the Web UI. */
export async function workflowEnds(
  client: Client,
  id: string,
  status: 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'RUNNING',
  timeoutMs = 15_000,
): Promise<void> {
  let seen = 'unknown';
  await until(
    `workflow ${id} is ${status}`,
    async () => {
      seen = (await client.workflow.getHandle(id).describe()).status.name;
      return seen === status;
    },
    timeoutMs,
  ).catch((error: unknown) => {
    throw new Error(`workflow ${id} is ${seen} where ${status} was expected`, { cause: error });
  });
}
