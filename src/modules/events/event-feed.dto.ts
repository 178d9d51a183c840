import { z } from 'zod';
import type { EventRow, FeedDelivery, FeedRow } from '../../database/event-feed-store.js';
import { deliveryReasons, deliveryStatuses } from '../../domain/closed-lists.js';
import { isEventType } from '../../domain/event-type.js';
import { eventIdPattern } from '../../domain/ids.js';
import { limitParameter, tenantParameter } from '../../http/page.dto.js';
import { timestamp } from '../../http/text.dto.js';
import { decodeFeedCursor, isFeedCursor } from './event-feed.cursor.js';

const afterRule = 'after is the id of an event, or a next_cursor or prev_cursor of an earlier answer';

export const eventFeedQuery = z.strictObject({
  after: z
    .string({ error: afterRule })
    .max(200, afterRule)
    .refine((text) => (isFeedCursor(text) ? decodeFeedCursor(text) !== null : eventIdPattern.test(text)), afterRule)
    .optional()
    .meta({
      description:
        'Where to go on: the id of an event, or the `next_cursor` of an earlier answer; with a `prev_cursor`, the page before. Left out: from the oldest event on.',
      example: 'evt_01KC0000000000000000000000',
    }),
  type: z
    .string({ error: 'type must be given once only' })
    .refine(isEventType, 'type is the name of an event type, such as invoice.paid')
    .optional()
    .meta({ description: 'Only events of this type.', example: 'invoice.paid' }),
  endpoint_id: z
    .string({ error: 'endpoint_id must be given once only' })
    .regex(/^[A-Za-z0-9_]{1,64}$/, 'endpoint_id is the id of an endpoint, we_…')
    .optional()
    .meta({
      description:
        'Only types that this endpoint subscribes to today, each with its delivery to the endpoint in `delivery`.',
      example: 'we_01KC0000000000000000000001',
    }),
  operational: z
    .enum(['true', 'false'], { error: 'operational is true or false' })
    .default('false')
    .transform((text) => text === 'true')
    .meta({
      openapi: { type: 'boolean', default: false },
      description: '`true`: with events about Posthorn itself, such as `endpoint.disabled`.',
    }),
  limit: limitParameter,
  tenant_id: tenantParameter,
});
export type EventFeedQuery = z.infer<typeof eventFeedQuery>;

const deliveryState = {
  id: z.string().meta({ description: 'The delivery, `whd_…`.', example: 'whd_01KC0000000000000000000002' }),
  status: z.enum(deliveryStatuses).describe('Its state now.'),
  reason: z.enum(deliveryReasons).describe('Why it is in that state.'),
  attempt_count: z.int().min(0).describe('Attempts in all rounds.'),
  last_status_code: z.int().nullable().describe('What the endpoint answered last; null where it never did.'),
};

const eventFields = {
  id: z.string().meta({ description: 'Your own id, or `evt_…`.', example: 'evt_01KC0000000000000000000000' }),
  type: z.string().meta({ description: 'As published.', example: 'invoice.paid' }),
  created_at: timestamp().describe('When it happened.'),
  accepted_at: timestamp().describe('When Posthorn accepted it.'),
  source: z.string().nullable().describe('As published, or null.'),
  subject: z.string().nullable().describe('As published, or null.'),
  api_version: z.string().nullable().describe('As published, or null.'),
  tenant_id: z.string().meta({ description: 'The tenant on whose behalf it happened.', example: 'default' }),
  payload_purged_at: timestamp().nullable().describe('When its data was purged; null while it is kept.'),
};

export const followedEventDto = z
  .object({
    ...eventFields,
    delivery: z
      .object(deliveryState)
      .meta({ id: 'DeliveryState', description: 'What became of an event for one endpoint.' })
      .nullable()
      .describe('With `endpoint_id`: the delivery to it, or null where there is none. Without: null.'),
  })
  .meta({ id: 'FollowedEvent', description: 'An event, as the list of events has it: without its data.' });

export const eventFeedDto = z
  .object({
    data: z.array(followedEventDto).describe('The rows of this page, oldest first.'),
    next_cursor: z
      .string()
      .nullable()
      .describe(
        'Go on with it, at once or later. Null where nothing is there yet: ask again with the cursor that you have.',
      ),
    prev_cursor: z.string().nullable().describe('Cursor of the page before; null on the first one.'),
  })
  .meta({ id: 'EventFeed', description: 'A page of events.' });

export const eventStateDto = z
  .object({
    ...eventFields,
    deliveries: z
      .array(
        z
          .object({
            ...deliveryState,
            endpoint_id: z
              .string()
              .meta({ description: 'Where it goes, `we_…`.', example: 'we_01KC0000000000000000000001' }),
          })
          .meta({ id: 'EventDeliveryState', description: 'What became of an event for one endpoint.' }),
      )
      .describe('One per endpoint that wanted it.'),
    data: z.any().meta({
      description: 'Byte for byte as published. Null too once it was purged: then `payload_purged_at` says when.',
      example: { invoice_id: 'inv_1', amount: '12.50' },
    }),
  })
  .meta({ id: 'Event', description: 'An event with its data.' });

export function toFollowedEvent(row: FeedRow): z.infer<typeof followedEventDto> {
  return { ...toFields(row), delivery: row.delivery === null ? null : toDeliveryState(row.delivery) };
}

/** JSON text: the data go into it as they are, since parsing them would change numbers, order and spelling. */
export function toEventState(row: EventRow): string {
  const deliveries = row.deliveries.map((delivery) => ({
    ...toDeliveryState(delivery),
    endpoint_id: delivery.endpoint_id,
  }));
  return `${JSON.stringify({ ...toFields(row), deliveries }).slice(0, -1)},"data":${row.data ?? 'null'}}`;
}

function toFields(row: Omit<FeedRow, 'delivery'>) {
  return {
    id: row.id,
    type: row.type,
    created_at: row.created_at.toISOString(),
    accepted_at: row.accepted_at.toISOString(),
    source: row.source,
    subject: row.subject,
    api_version: row.api_version,
    tenant_id: row.tenant_id,
    payload_purged_at: row.payload_purged_at?.toISOString() ?? null,
  };
}

function toDeliveryState({ id, status, reason, attempt_count, last_status_code }: FeedDelivery) {
  return { id, status, reason, attempt_count, last_status_code };
}
