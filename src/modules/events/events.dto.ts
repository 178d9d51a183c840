import { z } from 'zod';
import { deliveryStatuses } from '../../domain/closed-lists.js';
import { eventTypePattern, maxEventTypeLength } from '../../domain/event-type.js';
import { problemDto } from '../../http/problems/api-problems.js';

/** Bodies are read byte for byte (event-body.ts); these schemas describe them, and validate queries and answers. */
export const newEventDto = z
  .strictObject({
    type: z
      .string()
      .regex(eventTypePattern)
      .max(maxEventTypeLength)
      .describe(`Dotted name of a fact in the past tense, \`invoice.paid\`, ≤ ${maxEventTypeLength} characters.`),
    data: z.any().describe('Any JSON value; delivered byte for byte as published.'),
    id: z
      .string()
      .optional()
      .describe(
        'Your own id, 1 – 200 of `[A-Za-z0-9._:-]`; publishing it again with the same bytes answers as the first time.',
      ),
    created_at: z.string().optional().describe('When it happened, RFC 3339. Default: the time of acceptance.'),
    source: z.string().optional().describe('≤ 512 characters.'),
    subject: z.string().optional().describe('≤ 512 characters.'),
    api_version: z.string().optional().describe('≤ 64 characters.'),
    tenant_id: z
      .string()
      .optional()
      .describe('With a service key: the tenant on whose behalf it happened. Default `default`.'),
  })
  .meta({ id: 'NewEvent' });

export const newEventBatchDto = z.strictObject({ events: z.array(newEventDto) }).meta({ id: 'NewEventBatch' });

export const eventDeliveryDto = z
  .object({ id: z.string(), endpoint_id: z.string(), status: z.enum(deliveryStatuses) })
  .meta({ id: 'EventDelivery' });

export const eventDto = z
  .object({
    id: z.string(),
    type: z.string(),
    created_at: z.string(),
    source: z.string().nullable(),
    subject: z.string().nullable(),
    api_version: z.string().nullable(),
    tenant_id: z.string(),
    deliveries: z.array(eventDeliveryDto).describe('One per endpoint that wants it.'),
  })
  .meta({ id: 'PublishedEvent' });

export const dryRunDto = z
  .object({
    dry_run: z.literal(true),
    type: z.string(),
    tenant_id: z.string(),
    endpoints: z.array(z.object({ endpoint_id: z.string(), url: z.string() })).describe('Who would get it.'),
  })
  .meta({ id: 'DryRun' });

export const batchAnswerDto = z
  .object({
    accepted: z.int(),
    rejected: z.int(),
    data: z
      .array(
        z.object({
          index: z.int().describe('Place in the batch, from 0.'),
          status: z.int().describe('The status that this event alone would have got.'),
          event: eventDto.optional(),
          error: problemDto.optional(),
        }),
      )
      .describe('One entry per event, in order.'),
  })
  .meta({ id: 'BatchAnswer' });

export const publishQuery = z.strictObject({
  dry_run: z
    .enum(['true', 'false'], { error: 'dry_run is true or false' })
    .default('false')
    .transform((text) => text === 'true')
    .describe('Store nothing; say who would get the event.'),
});
export type PublishQuery = z.infer<typeof publishQuery>;
