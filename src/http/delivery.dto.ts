import { z } from 'zod';
import type { DeliveryRow } from '../database/delivery-store.js';
import { deliveryReasons, deliveryStatuses } from '../domain/closed-lists.js';
import { freeText, timestamp } from './text.dto.js';
import type { WorkflowLinks } from './workflow-links.js';

const maxReasonLength = 500;

export const deliveryDto = z
  .object({
    id: z.string().meta({
      description: '`whd_…`: the same id through every retry and redelivery; consumers deduplicate on it.',
      example: 'whd_01KC0000000000000000000002',
    }),
    event_id: z
      .string()
      .meta({ description: 'The event that is delivered.', example: 'evt_01KC0000000000000000000000' }),
    endpoint_id: z.string().meta({ description: 'Where it goes, `we_…`.', example: 'we_01KC0000000000000000000001' }),
    type: z.string().meta({ description: 'The event’s type.', example: 'invoice.paid' }),
    status: z
      .enum(deliveryStatuses)
      .describe(
        '`pending`: not attempted yet in this round. `retrying`: attempted, and waiting for the next attempt. `succeeded`. `failed`: given up, a dead letter. `held`: its endpoint takes nothing now. `cancelled`.',
      ),
    reason: z.enum(deliveryReasons).describe('Why the delivery has this status.'),
    round: z
      .int()
      .min(1)
      .describe('1, and one more with every redelivery of a closed delivery. A round is one run through the schedule.'),
    attempt_count: z.int().min(0).describe('Requests made, in all rounds.'),
    next_attempt_at: timestamp().nullable().describe('When the next attempt is due; null when none is.'),
    last_status_code: z.int().nullable().describe('HTTP status of the last answer; null where none came.'),
    last_error: z
      .string()
      .nullable()
      .describe('What was wrong with the last attempt, in words; null when it succeeded.'),
    request_reason: z
      .string()
      .nullable()
      .describe('The reason that came with the last redelivery or cancellation, or null.'),
    requested_by: z.string().nullable().describe('Id of the API key that asked for it, `key_…`, or null.'),
    workflow_id: z.string().describe('Id of its Temporal workflow: the delivery’s own.'),
    workflow_url: z.string().nullable().meta({
      description:
        'Its workflow in the Temporal Web UI; null where the configuration has no address of one (POSTHORN_TEMPORAL_UI_URL).',
      example: 'http://127.0.0.1:8434/namespaces/default/workflows/whd_01KC0000000000000000000002',
    }),
    created_at: timestamp().describe('When the event was accepted.'),
    updated_at: timestamp().describe('When the delivery last changed.'),
  })
  .meta({ id: 'Delivery', description: 'One event on its way to one endpoint.' });

/** Body of redeliver and cancel; may be left out. */
export const actionDto = z
  .strictObject(
    {
      reason: freeText('reason', maxReasonLength)
        .nullish()
        .meta({
          description: `Why, for whoever looks later: at most ${maxReasonLength} characters, kept with the delivery and the id of the key that acted.`,
          example: 'receiver is back',
        }),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? 'Send a JSON object, or no body' : undefined) },
  )
  .meta({ id: 'Action', description: 'What may be said beside an action.' });
export const actionBody = actionDto.nullish();
export type ActionBody = z.infer<typeof actionBody>;

export const redeliveryDto = deliveryDto
  .extend({
    already_in_progress: z
      .boolean()
      .describe('An attempt was due or in flight already: it is the answer to this request, and nothing was changed.'),
  })
  .meta({ id: 'Redelivery', description: 'The delivery after the request.' });

export function toDelivery(row: DeliveryRow, workflows: WorkflowLinks): z.infer<typeof deliveryDto> {
  return {
    id: row.id,
    event_id: row.event_id,
    endpoint_id: row.endpoint_id,
    type: row.type,
    status: row.status,
    reason: row.reason,
    round: row.round,
    attempt_count: row.attempt_count,
    next_attempt_at: row.next_attempt_at?.toISOString() ?? null,
    last_status_code: row.last_status_code,
    last_error: row.last_error,
    request_reason: row.request_reason,
    requested_by: row.requested_by,
    workflow_id: row.id,
    workflow_url: workflows.urlOf(row.id),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}
