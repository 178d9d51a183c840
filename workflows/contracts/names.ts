/** The only file that builds workflow ids and names task queues. */

export const workflowTypes = {
  deliver: 'deliver',
  deadLetterQueue: 'deadLetterQueue',
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
export const deadLetterQueueWorkflowId = (endpointId: string): string => `dead-letter-queue/${endpointId}`;

/** Keyword search attributes, ≤ 200 characters each: Postgres visibility columns are VARCHAR(255). */
export const searchAttributes = {
  tenantId: 'PosthornTenantId',
  endpointId: 'PosthornEndpointId',
  eventType: 'PosthornEventType',
  eventId: 'PosthornEventId',
} as const;

/** Memo key of runs that a machine started: the only round it may act for. Runs started by hand have none. */
export const roundMemo = 'round';
