import { z } from 'zod';
import { deliveryStatuses } from '../../domain/closed-lists.js';
import { eventTypePattern, maxEventTypeLength } from '../../domain/event-type.js';
import { eventIdPattern, tenantIdPattern } from '../../domain/ids.js';
import { problemDto } from '../../http/problems/api-problems.js';
import { timestamp } from '../../http/text.dto.js';
import { maxApiVersionLength, maxJsonDepth, maxSourceLength, maxSubjectLength } from './event-body.js';

/** Bodies are read byte for byte (event-body.ts); these schemas describe them, and validate queries. */
export const newEventDto = z
  .strictObject({
    type: z
      .string()
      .regex(eventTypePattern)
      .max(maxEventTypeLength)
      .meta({
        description: `Dotted name of a fact in the past tense, at most ${maxEventTypeLength} characters from \`[A-Za-z0-9_-]\` and dots.`,
        example: 'invoice.paid',
      }),
    data: z.any().meta({
      description: `Any JSON value, nested at most ${maxJsonDepth} levels deep. Delivered byte for byte as published.`,
      example: { invoice_id: 'inv_1', amount: '12.50' },
    }),
    id: z.string().regex(eventIdPattern).nullish().meta({
      description:
        'Your own id, 1 – 200 of `[A-Za-z0-9._:-]`; by default Posthorn makes one. Publishing it again with the same bytes answers as the first time, with other bytes is a 409.',
      example: 'inv_1-paid',
    }),
    created_at: timestamp()
      .nullish()
      .describe(
        'When it happened: RFC 3339 with an offset, kept in UTC with milliseconds. Default: the time of acceptance.',
      ),
    source: z
      .string()
      .max(maxSourceLength)
      .nullish()
      .meta({
        description: `Where it happened: a URI reference of 1 – ${maxSourceLength} characters.`,
        example: '/billing',
      }),
    subject: z
      .string()
      .max(maxSubjectLength)
      .nullish()
      .meta({
        description: `What it is about: 1 – ${maxSubjectLength} characters, none of them control characters.`,
        example: 'inv_1',
      }),
    api_version: z
      .string()
      .max(maxApiVersionLength)
      .nullish()
      .meta({
        description: `Version of the data’s shape: 1 – ${maxApiVersionLength} characters, none of them control characters. Default: the newest version of its type, where that is registered with versions.`,
        example: '2026-01-31',
      }),
    tenant_id: z.string().regex(tenantIdPattern).nullish().meta({
      description:
        'The tenant on whose behalf it happened, 1 – 64 of `[A-Za-z0-9._-]`. A service key may name any, by default `default`; a tenant’s key only its own.',
      example: 'default',
    }),
  })
  .meta({ id: 'NewEvent', description: 'An event to publish. Optional fields may be null, which means: not given.' });

export const newEventBatchDto = z
  .strictObject({
    events: z
      .array(newEventDto)
      .describe(
        'At most POSTHORN_HTTP_BATCH_LIMIT_EVENTS (1,000) events, each of at most POSTHORN_HTTP_BODY_LIMIT_BYTES.',
      ),
  })
  .meta({ id: 'NewEventBatch', description: 'Events to publish together.' });

export const eventDeliveryDto = z
  .object({
    id: z.string().meta({ description: 'The delivery, `whd_…`.', example: 'whd_01KC0000000000000000000002' }),
    endpoint_id: z.string().meta({ description: 'Where it goes, `we_…`.', example: 'we_01KC0000000000000000000001' }),
    status: z
      .enum(deliveryStatuses)
      .describe(
        'As it was accepted: `pending`; `held` where the endpoint is paused or not verified yet; `cancelled` where such events are dropped. What became of it since is told by the delivery itself.',
      ),
  })
  .meta({ id: 'EventDelivery', description: 'One delivery of an event, as it was accepted.' });

export const eventDto = z
  .object({
    id: z.string().meta({ description: 'Your own id, or `evt_…`.', example: 'evt_01KC0000000000000000000000' }),
    type: z.string().meta({ description: 'As published.', example: 'invoice.paid' }),
    created_at: timestamp().describe('When it happened: as published, in UTC, or the time of acceptance.'),
    source: z.string().nullable().describe('As published, or null.'),
    subject: z.string().nullable().describe('As published, or null.'),
    api_version: z
      .string()
      .nullable()
      .describe('As published; else the newest version of its type, where that has any; or null.'),
    tenant_id: z.string().meta({ description: 'The tenant on whose behalf it happened.', example: 'default' }),
    deliveries: z
      .array(eventDeliveryDto)
      .describe('One per active endpoint that wants this type, at the time of acceptance. May be empty.'),
  })
  .meta({ id: 'PublishedEvent', description: 'An event that is committed to Postgres, with its deliveries.' });

const matchRule = {
  decided_by: z
    .enum(['events', 'filter', 'status'])
    .describe('`events`: its event types. `filter`: its content filter. `status`: it is disabled or expired.'),
  rule: z.string().nullable().meta({
    description:
      'What decided: the pattern of `events` that wants the type, the place in the filter that says no, or the status. Null: no pattern wants the type, or the filter lets it through.',
    example: 'filter.amount.$gte',
  }),
};

export const dryRunDto = z
  .object({
    dry_run: z.literal(true).describe('Nothing was stored.'),
    type: z.string().meta({ description: 'As published.', example: 'invoice.paid' }),
    api_version: z
      .string()
      .nullable()
      .describe('As published, or the newest version of its type; null where there is none.'),
    tenant_id: z.string().meta({ description: 'The tenant whose endpoints were looked at.', example: 'default' }),
    endpoints: z
      .array(
        z
          .object({
            endpoint_id: z.string().meta({ description: '`we_…`', example: 'we_01KC0000000000000000000001' }),
            url: z.string().meta({ description: 'Where it would go.', example: 'https://hooks.example.com/posthorn' }),
            status: z
              .enum(['pending', 'held', 'cancelled'])
              .describe(
                '`pending`: it would go at once. `held`: when the endpoint is resumed or verified. `cancelled`: the endpoint is not verified, and the configuration says that such events are dropped.',
              ),
            ...matchRule,
          })
          .meta({ id: 'DryRunEndpoint', description: 'An endpoint that would get the event.' }),
      )
      .describe('Who would get it.'),
    others: z
      .array(
        z
          .object({
            endpoint_id: z.string().meta({ description: '`we_…`', example: 'we_01KC0000000000000000000001' }),
            url: z.string().meta({ description: 'Where it would go.', example: 'https://hooks.example.com/posthorn' }),
            ...matchRule,
          })
          .meta({ id: 'DryRunOther', description: 'An endpoint that would not get the event.' }),
      )
      .describe('Who would not get it, and why: of the newest 250 endpoints of the tenant.'),
  })
  .meta({ id: 'DryRun', description: 'What publishing would do.' });

export const batchAnswerDto = z
  .object({
    accepted: z.int().min(0).describe('Events that are committed: those with status 202.'),
    rejected: z.int().min(0).describe('Events that were refused; nothing of them was stored.'),
    data: z
      .array(
        z
          .object({
            index: z.int().min(0).describe('Place in the batch, from 0.'),
            status: z.int().describe('The status that this event alone would have got: 202, or that of its problem.'),
            event: eventDto.optional().describe('Where it was accepted.'),
            error: problemDto.optional().describe('Where it was refused.'),
          })
          .meta({ id: 'BatchItem', description: 'What became of one event of a batch: `event` or `error`.' }),
      )
      .describe('One entry per event, in the order of the batch.'),
  })
  .meta({ id: 'BatchAnswer', description: 'What became of a batch.' });

export const publishQuery = z.strictObject({
  dry_run: z
    .enum(['true', 'false'], { error: 'dry_run is true or false' })
    .default('false')
    .transform((text) => text === 'true')
    .meta({
      openapi: { type: 'boolean', default: false },
      description: '`true`: store nothing, and say who would get the event.',
    }),
});
export type PublishQuery = z.infer<typeof publishQuery>;
