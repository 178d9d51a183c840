/** The only file that builds workflow ids and names task queues. */

export const workflowTypes = {
  deliver: 'deliver',
  deadLetterQueue: 'deadLetterQueue',
  endpointHealth: 'endpointHealth',
  replay: 'replay',
  purge: 'purge',
  reconcile: 'reconcile',
} as const;

export const taskQueues = {
  /** `deliver` workflows and their local first attempts. */
  deliver: 'posthorn',
  /** Ordinary attempts. */
  attempts: 'posthorn-attempts',
  /** All the rest: it answers while every attempt hangs. */
  control: 'posthorn-control',
} as const;

/** The delivery's id is its workflow's id. */
export const deliverWorkflowId = (deliveryId: string): string => deliveryId;
export const endpointHealthWorkflowId = (endpointId: string): string => `endpoint-health/${endpointId}`;
export const deadLetterQueueWorkflowId = (endpointId: string): string => `dead-letter-queue/${endpointId}`;
export const replayWorkflowId = (replayId: string): string => `replay/${replayId}`;

/** Of the schedules, and the beginning of the ids of the workflows that they start. */
export const scheduleIds = { purge: 'posthorn-purge', reconcile: 'posthorn-reconcile' } as const;

/** Keyword search attributes, ≤ 200 characters each: Postgres visibility columns are VARCHAR(255). */
export const searchAttributes = {
  tenantId: 'PosthornTenantId',
  endpointId: 'PosthornEndpointId',
  eventType: 'PosthornEventType',
  eventId: 'PosthornEventId',
} as const;

/** Memo key of runs that a machine started: who did. Runs started by hand have none, and so redeliver a closed delivery. */
export const startedByMemo = 'startedBy';
export type StartedBy = 'dispatcher' | 'sweeper' | 'redelivery' | 'replay';
