/** The registration list: each name is a workflow type, as operators read it in the Web UI. */
export { deliver } from './deliver.workflow.js';
export { deadLetterQueue } from './dead-letter-queue.workflow.js';
export { replay } from './replay.workflow.js';
export { purge } from './purge.workflow.js';
export { reconcile } from './reconcile.workflow.js';
export { endpointHealth } from './endpoint-health.workflow.js';
