import { z } from 'zod';
import { parseDurationMs } from '../../config/duration.js';
import type { DeliveryFilter } from '../../database/delivery-list.js';
import type { AttemptRow } from '../../database/delivery-store.js';
import { attemptErrorCodes, deliveryStatuses } from '../../domain/closed-lists.js';
import { deliveryDto } from '../../http/delivery.dto.js';
import { filterParameters } from '../../http/filter.dto.js';
import { listOf, pageQuery, tenantParameter } from '../../http/page.dto.js';
import { timestamp } from '../../http/text.dto.js';

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
    resent: z
      .boolean()
      .describe(
        'The request went out once more within this attempt: a reused connection had closed under it, or the endpoint answered 401 to a kept OAuth 2.0 token and got another one.',
      ),
  })
  .meta({ id: 'Attempt', description: 'One HTTP request of a delivery.' });

export const attemptListDto = listOf(attemptDto).meta({ id: 'AttemptList', description: 'A page of attempts.' });

export const deliveryQuery = z.strictObject({
  ...pageQuery,
  status: z
    .enum(deliveryStatuses, { error: `status is one of ${deliveryStatuses.join(', ')}` })
    .optional()
    .meta({ description: 'Only deliveries with this status.', example: 'failed' }),
  ...filterParameters('deliveries'),
});
export type DeliveryQuery = z.infer<typeof deliveryQuery>;

export function toDeliveryFilter(query: DeliveryQuery): DeliveryFilter {
  return {
    status: query.status,
    reason: query.reason,
    endpointId: query.endpoint_id,
    eventId: query.event_id,
    type: query.type,
    httpStatus: query.http_status,
    createdAfter: query.created_after,
    createdBefore: query.created_before,
  };
}

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

export const attemptQuery = z.strictObject(pageQuery);
export type AttemptQuery = z.infer<typeof attemptQuery>;

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
