import type { Priority } from '@temporalio/common';

/** Tasks of one endpoint take turns with those of all others, however many it has. The server refuses longer keys. */
export function fairAmongEndpoints(endpointId: string): Priority {
  return { priorityKey: 3, fairnessKey: endpointId.slice(0, 64) };
}
