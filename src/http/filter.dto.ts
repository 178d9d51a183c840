import { z } from 'zod';
import { deliveryReasons } from '../domain/closed-lists.js';
import { isEventType, maxEventTypeLength } from '../domain/event-type.js';
import { eventIdPattern } from '../domain/ids.js';
import { toUtcMilliseconds } from '../domain/date-time.js';

/** Conditions that lists and replays have in common, in a query or a body. `what` is what is chosen. */
export function idFilters(what: string) {
  return {
    endpoint_id: z
      .string({ error: 'endpoint_id is one id of an endpoint, we_…' })
      .regex(/^[A-Za-z0-9_]{1,64}$/, 'endpoint_id is the id of an endpoint, we_…')
      .optional()
      .meta({ description: `Only ${what} for this endpoint.`, example: 'we_01KC0000000000000000000001' }),
    event_id: z
      .string({ error: 'event_id is one id of an event' })
      .regex(eventIdPattern, 'event_id is the id of an event: 1 – 200 of the characters A-Z a-z 0-9 . _ : -')
      .optional()
      .meta({ description: `Only ${what} of this event.`, example: 'inv_1-paid' }),
    type: z
      .string({ error: 'type is one event type, such as invoice.paid' })
      .refine(isEventType, `type is an event type of at most ${maxEventTypeLength} characters, such as invoice.paid`)
      .optional()
      .meta({ description: `Only ${what} of events of exactly this type.`, example: 'invoice.paid' }),
    reason: z
      .enum(deliveryReasons, { error: `reason is one of ${deliveryReasons.join(', ')}` })
      .optional()
      .meta({ description: `Only ${what} with this reason.`, example: 'attempts_exhausted' }),
  };
}

/** Filters that several lists take, each under its name in the query. `what` is what is listed. */
export function filterParameters(what: string) {
  return {
    ...idFilters(what),
    http_status: z
      .string({ error: httpStatusRule })
      .regex(/^[1-5][0-9]{2}$/, httpStatusRule)
      .transform(Number)
      .optional()
      .meta({
        openapi: { type: 'integer', minimum: 100, maximum: 599 },
        description: `Only ${what} whose last answer had this HTTP status.`,
        example: 503,
      }),
    created_after: time('created_after').meta({
      format: 'date-time',
      description: `Only ${what} from this time on: RFC 3339 with any offset.`,
      example: '2026-01-31T12:00:00.000Z',
    }),
    created_before: time('created_before').meta({
      format: 'date-time',
      description: `Only ${what} before this time: RFC 3339 with any offset.`,
      example: '2026-02-01T00:00:00+02:00',
    }),
  };
}

const httpStatusRule = 'http_status is one HTTP status from 100 to 599, such as 503';

function time(name: string) {
  const rule = `${name} is one time in RFC 3339, with an offset, such as 2026-01-31T12:00:00Z or 2026-01-31T14:00:00%2B02:00`;
  return z
    .string({ error: rule })
    .transform((text, context) => {
      // In a query an unescaped + means a space: where only an offset can follow, it was a +.
      const utc = toUtcMilliseconds(text.replace(/ (?=\d\d:\d\d$)/, '+'));
      if (utc !== null) return new Date(utc);
      context.addIssue({ code: 'custom', message: rule });
      return z.NEVER;
    })
    .optional();
}
