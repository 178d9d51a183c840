import { z } from 'zod';
import type { DeliveryRow } from '../../database/delivery-store.js';
import type { LetterFilter, LetterRow, WholeLetterRow } from '../../database/letter-store.js';
import { deliveryReasons } from '../../domain/closed-lists.js';
import { letterId, letterResolutions } from '../../domain/letters.js';
import { deliveryDto, toDelivery } from '../../http/delivery.dto.js';
import { filterParameters } from '../../http/filter.dto.js';
import { listOf, pageQuery } from '../../http/page.dto.js';
import { timestamp } from '../../http/text.dto.js';
import type { WorkflowLinks } from '../../http/workflow-links.js';

const resolutions = ['open', ...letterResolutions] as const;

export const letterDto = z
  .object({
    id: z.string().meta({
      description: 'The delivery’s id, a dot, and the round that failed.',
      example: 'whd_01KC0000000000000000000002.1',
    }),
    delivery_id: z.string().meta({ description: 'The delivery.', example: 'whd_01KC0000000000000000000002' }),
    round: z.int().min(1).describe('The round that failed.'),
    event_id: z.string().meta({ description: 'The original event.', example: 'evt_01KC0000000000000000000000' }),
    endpoint_id: z.string().meta({ description: 'Where it went, `we_…`.', example: 'we_01KC0000000000000000000001' }),
    type: z.string().meta({ description: 'The event’s type.', example: 'invoice.paid' }),
    reason: z.enum(deliveryReasons).meta({ description: 'Why it was given up.', example: 'attempts_exhausted' }),
    attempt_count: z.int().min(0).describe('Requests made until then, in all rounds.'),
    last_status_code: z.int().nullable().describe('HTTP status of the last answer; null where none came.'),
    last_error: z.string().nullable().describe('What was wrong with the last attempt, in words.'),
    created_at: timestamp().describe('When it was given up.'),
    expires_at: timestamp().describe('When the letter expires, unless it is resolved before.'),
    resolution: z
      .enum(resolutions)
      .describe(
        '`open`: it waits for somebody. `replayed`: its delivery succeeded since, or failed again and has a newer letter. `expired`. `discarded`: somebody decided that it is not needed.',
      ),
    resolved_at: timestamp().nullable().describe('When it was resolved; null while it is open.'),
    resolved_by: z
      .string()
      .nullable()
      .describe(
        'Id of the API key that discarded it, or asked for the redelivery that resolved it; null where none did.',
      ),
    resolved_reason: z.string().nullable().describe('What was written beside that request, or null.'),
  })
  .meta({ id: 'DeadLetter', description: 'A delivery that was given up, as it was then.' });

export const letterListDto = listOf(letterDto).meta({ id: 'DeadLetterList', description: 'A page of dead letters.' });

export const wholeLetterDto = letterDto
  .extend({
    last_response_headers: z
      .array(
        z.array(z.string()).meta({
          openapi: { type: 'array', minItems: 2, maxItems: 2 },
          description: 'Name and value.',
          example: ['content-type', 'text/plain'],
        }),
      )
      .describe('Headers of the last answer, as they came; empty where the delivery was not given up by an attempt.'),
    last_response_body: z
      .string()
      .nullable()
      .describe('That answer’s body, at most 16 KiB of it, read as UTF-8; null where there was none.'),
    event: z
      .object({
        id: z.string().describe('As published, or `evt_…`.'),
        type: z.string().meta({ description: 'As published.', example: 'invoice.paid' }),
        created_at: timestamp().describe('When it happened.'),
        source: z.string().nullable().describe('As published, or null.'),
        subject: z.string().nullable().describe('As published, or null.'),
        api_version: z.string().nullable().describe('As published, or null.'),
        data_json: z.string().nullable().meta({
          description: 'The data as JSON text, byte for byte as published; null once it was removed.',
          example: '{"invoice_id":"inv_1"}',
        }),
      })
      .nullable()
      .describe('The original event; null once it was removed.'),
    delivery: deliveryDto.describe('The delivery as it is now.'),
  })
  .meta({ id: 'WholeDeadLetter', description: 'A dead letter with the last answer, its event and its delivery.' });

export const letterQuery = z.strictObject({
  ...pageQuery,
  resolution: z
    .enum(resolutions, { error: `resolution is one of ${resolutions.join(', ')}` })
    .optional()
    .meta({ description: 'Only letters of which this became.', example: 'open' }),
  ...filterParameters('letters'),
});
export type LetterQuery = z.infer<typeof letterQuery>;

export function toLetterFilter(query: LetterQuery): LetterFilter {
  return {
    endpointId: query.endpoint_id,
    eventId: query.event_id,
    type: query.type,
    reason: query.reason,
    httpStatus: query.http_status,
    resolution: query.resolution,
    createdAfter: query.created_after,
    createdBefore: query.created_before,
  };
}

export function toLetter(row: LetterRow): z.infer<typeof letterDto> {
  return {
    id: letterId(row.delivery_id, row.round),
    delivery_id: row.delivery_id,
    round: row.round,
    event_id: row.event_id,
    endpoint_id: row.endpoint_id,
    type: row.type,
    reason: row.reason,
    attempt_count: row.attempts,
    last_status_code: row.last_status_code,
    last_error: row.last_error,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    resolution: row.resolution ?? 'open',
    resolved_at: row.resolved_at?.toISOString() ?? null,
    resolved_by: row.resolved_by,
    resolved_reason: row.resolved_reason,
  };
}

export function toWholeLetter(
  row: WholeLetterRow,
  delivery: DeliveryRow,
  workflows: WorkflowLinks,
): z.infer<typeof wholeLetterDto> {
  const headers = row.last_response_headers;
  return {
    ...toLetter(row),
    last_response_headers: headers === null ? [] : (JSON.parse(headers) as [string, string][]),
    last_response_body: row.last_response_body?.toString('utf8') ?? null,
    event: row.event_created_at && {
      id: row.event_id,
      type: row.type,
      created_at: row.event_created_at.toISOString(),
      source: row.event_source,
      subject: row.event_subject,
      api_version: row.event_api_version,
      data_json: row.event_data,
    },
    delivery: toDelivery(delivery, workflows),
  };
}
