import { z } from 'zod';
import { parseDurationMs } from '../../config/duration.js';
import type { AttemptRow, DeliveryRow } from '../../database/delivery-store.js';
import { attemptErrorCodes, deliveryReasons, deliveryStatuses } from '../../domain/closed-lists.js';
import { listOf, pageQuery } from '../../http/page.dto.js';

const timestamp = z.string().describe('RFC 3339, UTC, milliseconds.');

export const deliveryDto = z
  .object({
    id: z.string().describe('`whd_…`: the same id through every retry and redelivery; consumers deduplicate on it.'),
    event_id: z.string(),
    endpoint_id: z.string(),
    type: z.string().describe('The event’s type.'),
    status: z.enum(deliveryStatuses).describe('`failed` is the dead-letter store.'),
    reason: z.enum(deliveryReasons).describe('Why the delivery has this status.'),
    round: z.int().describe('1, and one more with every redelivery of a closed delivery.'),
    attempt_count: z.int().describe('Requests made, in all rounds.'),
    next_attempt_at: timestamp.nullable().describe('When the next attempt is due; null when none is.'),
    last_status_code: z.int().nullable(),
    last_error: z.string().nullable(),
    request_reason: z
      .string()
      .nullable()
      .describe('What the requester of the last redelivery or cancellation gave as reason.'),
    requested_by: z.string().nullable().describe('Id of the API key that asked for it.'),
    workflow_id: z.string().describe('Its Temporal workflow.'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Delivery' });

export const deliveryListDto = listOf(deliveryDto).meta({ id: 'DeliveryList' });

export const attemptDto = z
  .object({
    id: z.string(),
    number: z.int().describe('1, 2, …; counts on over rounds. Sent as `Webhook-Attempt`.'),
    round: z.int(),
    started_at: timestamp,
    duration_ms: z.int().describe('From dialling to the last byte of the answer.'),
    status_code: z.int().nullable().describe('Null where no answer came.'),
    error_code: z.enum(attemptErrorCodes).nullable(),
    error_message: z.string().nullable(),
    response_headers: z.array(z.tuple([z.string(), z.string()])).describe('Name and value, as they came.'),
    response_body: z.string().nullable().describe('At most 16 KiB, read as UTF-8.'),
    response_truncated: z.boolean(),
    remote_address: z.string().nullable().describe('The address that was dialled.'),
    resent: z.boolean().describe('A reused connection had closed: the request went out once more within this attempt.'),
  })
  .meta({ id: 'Attempt' });

export const attemptListDto = listOf(attemptDto).meta({ id: 'AttemptList' });

export const deliveryQuery = z.strictObject({
  ...pageQuery,
  status: z.enum(deliveryStatuses, { error: `status is one of ${deliveryStatuses.join(', ')}` }).optional(),
  endpoint_id: z.string().max(64).optional(),
  event_id: z.string().max(200).optional(),
  type: z.string().max(128).optional(),
});
export type DeliveryQuery = z.infer<typeof deliveryQuery>;

export const maxWaitMs = 60_000;
export const waitQuery = z.strictObject({
  tenant_id: pageQuery.tenant_id,
  wait: z
    .string()
    .transform((text, context) => {
      try {
        return Math.min(parseDurationMs(text), maxWaitMs);
      } catch {
        context.addIssue({ code: 'custom', message: 'wait is a duration such as 10s, at most 60s' });
        return z.NEVER;
      }
    })
    .optional()
    .describe('Answer when the delivery is closed, or after this time: `10s`, at most `60s`.'),
});
export type WaitQuery = z.infer<typeof waitQuery>;

export const attemptQuery = z.strictObject({
  tenant_id: pageQuery.tenant_id,
  limit: pageQuery.limit,
  cursor: z
    .string()
    .regex(/^\d{1,9}$/, 'cursor must be a next_cursor of an earlier answer')
    .optional(),
});
export type AttemptQuery = z.infer<typeof attemptQuery>;

/** Body of redeliver and cancel; may be left out. */
export const actionBody = z
  .strictObject({ reason: z.string().max(500).optional().describe('Kept with the delivery, ≤ 500 characters.') })
  .nullish();
export type ActionBody = z.infer<typeof actionBody>;

export const redeliveryDto = deliveryDto
  .extend({
    already_in_progress: z
      .boolean()
      .describe('An attempt was due or in flight already: it is the answer to this request.'),
  })
  .meta({ id: 'Redelivery' });

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
