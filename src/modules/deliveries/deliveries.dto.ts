import { z } from 'zod';
import { parseDurationMs } from '../../config/duration.js';
import type { AttemptRow, DeliveryRow } from '../../database/delivery-store.js';
import { attemptErrorCodes, deliveryReasons, deliveryStatuses } from '../../domain/closed-lists.js';
import { isEventType, maxEventTypeLength } from '../../domain/event-type.js';
import { eventIdPattern } from '../../domain/ids.js';
import { limitParameter, listOf, pageQuery, tenantParameter } from '../../http/page.dto.js';
import { freeText, timestamp } from '../../http/text.dto.js';

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
    created_at: timestamp().describe('When the event was accepted.'),
    updated_at: timestamp().describe('When the delivery last changed.'),
  })
  .meta({ id: 'Delivery', description: 'One event on its way to one endpoint.' });

export const deliveryListDto = listOf(deliveryDto).meta({ id: 'DeliveryList', description: 'A page of deliveries.' });

export const attemptDto = z
  .object({
    id: z.string().meta({ description: '`att_…`', example: 'att_01KC0000000000000000000003' }),
    number: z.int().min(1).describe('1, 2, …; counts on over rounds. Sent as `Webhook-Attempt`.'),
    round: z.int().min(1).describe('The round that it belongs to.'),
    started_at: timestamp().describe('When the request began.'),
    duration_ms: z.int().min(0).describe('Milliseconds from dialling to the last byte of the answer.'),
    status_code: z.int().nullable().describe('HTTP status of the answer; null where none came.'),
    error_code: z.enum(attemptErrorCodes).nullable().describe('What went wrong; null when the attempt delivered.'),
    error_message: z.string().nullable().describe('The same in words.'),
    response_headers: z
      .array(
        z.array(z.string()).meta({
          openapi: { type: 'array', minItems: 2, maxItems: 2 },
          description: 'Name and value.',
          example: ['content-type', 'text/plain'],
        }),
      )
      .describe('Headers of the answer, as they came.'),
    response_body: z
      .string()
      .nullable()
      .describe('The answer’s body, at most 16 KiB of it, read as UTF-8; null where there was none.'),
    response_truncated: z.boolean().describe('The answer was longer than what is kept.'),
    remote_address: z
      .string()
      .nullable()
      .meta({ description: 'The address that was dialled.', example: '203.0.113.7' }),
    resent: z.boolean().describe('A reused connection had closed: the request went out once more within this attempt.'),
  })
  .meta({ id: 'Attempt', description: 'One HTTP request of a delivery.' });

export const attemptListDto = listOf(attemptDto).meta({ id: 'AttemptList', description: 'A page of attempts.' });

export const deliveryQuery = z.strictObject({
  ...pageQuery,
  status: z
    .enum(deliveryStatuses, { error: `status is one of ${deliveryStatuses.join(', ')}` })
    .optional()
    .meta({ description: 'Only deliveries with this status.', example: 'failed' }),
  endpoint_id: z
    .string({ error: 'endpoint_id must be given once only' })
    .regex(/^[A-Za-z0-9_]{1,64}$/, 'endpoint_id is the id of an endpoint, we_…')
    .optional()
    .meta({ description: 'Only deliveries to this endpoint.', example: 'we_01KC0000000000000000000001' }),
  event_id: z
    .string({ error: 'event_id must be given once only' })
    .regex(eventIdPattern, 'event_id is the id of an event: 1 – 200 of the characters A-Z a-z 0-9 . _ : -')
    .optional()
    .meta({ description: 'Only deliveries of this event.', example: 'inv_1-paid' }),
  type: z
    .string({ error: 'type must be given once only' })
    .refine(isEventType, `type is an event type of at most ${maxEventTypeLength} characters, such as invoice.paid`)
    .optional()
    .meta({ description: 'Only deliveries of events of exactly this type.', example: 'invoice.paid' }),
});
export type DeliveryQuery = z.infer<typeof deliveryQuery>;

export const maxWaitMs = 60_000;
const waitRule = 'wait is a duration such as 10s or 500ms; longer ones than 60s count as 60s';
export const waitQuery = z.strictObject({
  tenant_id: tenantParameter,
  wait: z
    .string({ error: waitRule })
    .transform((text, context) => {
      try {
        return Math.min(parseDurationMs(text), maxWaitMs);
      } catch {
        context.addIssue({ code: 'custom', message: waitRule });
        return z.NEVER;
      }
    })
    .optional()
    .meta({
      description:
        'Answer when the delivery is closed, or after this time: a number and a unit (`ms`, `s`, `m`), at most `60s`; longer ones count as `60s`.',
      example: '10s',
    }),
});
export type WaitQuery = z.infer<typeof waitQuery>;

const attemptCursorRule = 'cursor must be a next_cursor of an earlier answer';
export const attemptQuery = z.strictObject({
  tenant_id: tenantParameter,
  limit: limitParameter,
  cursor: z
    .string({ error: attemptCursorRule })
    .regex(/^\d{1,9}$/, attemptCursorRule)
    .optional()
    .describe('`next_cursor` of an earlier answer.'),
});
export type AttemptQuery = z.infer<typeof attemptQuery>;

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

export function toDelivery(row: DeliveryRow): z.infer<typeof deliveryDto> {
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
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

export function toAttempt(row: AttemptRow): z.infer<typeof attemptDto> {
  return {
    id: row.id,
    number: row.number,
    round: row.round,
    started_at: row.started_at.toISOString(),
    duration_ms: row.duration_ms,
    status_code: row.status_code,
    error_code: row.error_code as z.infer<typeof attemptDto>['error_code'],
    error_message: row.error_message,
    response_headers: row.response_headers === null ? [] : (JSON.parse(row.response_headers) as [string, string][]),
    response_body: row.response_body === null ? null : row.response_body.toString('utf8'),
    response_truncated: row.response_truncated,
    remote_address: row.remote_address,
    resent: row.resent,
  };
}
