import { z } from 'zod';
import type { EndpointRow } from '../../database/endpoint-store.js';
import { endpointStatuses } from '../../domain/closed-lists.js';
import { isEventFilter, maxEventTypeLength } from '../../domain/event-type.js';
import { tenantIdPattern } from '../../domain/ids.js';
import { maxTimeoutMs, minTimeoutMs, profiles, type ProfileName } from '../../domain/profiles.js';
import { listOf, pageQuery } from '../../http/page.dto.js';
import { freeText, timestamp } from '../../http/text.dto.js';

const profileNames = Object.keys(profiles) as [ProfileName, ...ProfileName[]];
const minRetryWaitMs = 100;
const maxRetryWaitMs = 24 * 60 * 60 * 1_000;
const maxFilters = 100;
const maxRetryWaits = 20;
const maxDescriptionLength = 500;

const urlRule = 'url must be the https URL to deliver to, such as https://hooks.example.com/posthorn';
const filterRule =
  'must be a dotted event type such as invoice.paid, a pattern with * for whole segments such as invoice.*, or * for all';
const eventsRule = "events must be a list of event types, such as ['invoice.paid'], or ['*'] for all";
const timeoutRule = `timeout_ms is a whole number of milliseconds from ${minTimeoutMs} to ${maxTimeoutMs}`;
const waitsRule = `retry_waits_ms is a list of 1 – ${maxRetryWaits} whole numbers of milliseconds from ${minRetryWaitMs} to ${maxRetryWaitMs}`;

export const newEndpointDto = z
  .strictObject(
    {
      url: z
        .string({ error: urlRule })
        // The URL parser would silently put another character in its place.
        .refine((text) => !/\p{Cs}/u.test(text), { error: urlRule, params: { code: 'invalid_url' } })
        .meta({
          description:
            'Where to POST. https and a public address, unless the configuration allows more; no user name, no fragment; at most 2,048 characters.',
          example: 'https://hooks.example.com/posthorn',
        }),
      events: z
        .array(z.string({ error: filterRule }).refine(isEventFilter, filterRule), { error: eventsRule })
        .min(1, "events must name at least one event type, or '*' for all")
        .max(maxFilters, `events may name at most ${maxFilters} event types and patterns`)
        .meta({
          description: `1 – ${maxFilters} filters of at most ${maxEventTypeLength} characters: exact names (\`invoice.paid\`), \`*\` for one segment (\`invoice.*\`), or \`*\` alone for all.`,
          example: ['invoice.*'],
        }),
      description: freeText('description', maxDescriptionLength)
        .nullish()
        .meta({
          description: `For people: at most ${maxDescriptionLength} characters.`,
          example: 'Billing, production',
        }),
      profile: z
        .enum(profileNames, { error: `profile is one of ${profileNames.join(', ')}` })
        .default('default')
        .describe('The preset that fixes envelope, signature, schedule and timeout together.'),
      timeout_ms: z
        .int({ error: timeoutRule })
        .min(minTimeoutMs, timeoutRule)
        .max(maxTimeoutMs, timeoutRule)
        .optional()
        .meta({
          description: `Milliseconds for one attempt, from dialling to the last byte of the answer, ${minTimeoutMs} – ${maxTimeoutMs}. Default: the profile’s.`,
          example: profiles.default.timeoutMs,
        }),
      retry_waits_ms: z
        .array(z.int({ error: waitsRule }).min(minRetryWaitMs, waitsRule).max(maxRetryWaitMs, waitsRule), {
          error: waitsRule,
        })
        .min(1, waitsRule)
        .max(maxRetryWaits, waitsRule)
        .nullish()
        .meta({
          description: `Milliseconds to wait after each failed attempt: 1 – ${maxRetryWaits} of ${minRetryWaitMs} – ${maxRetryWaitMs}, ±20 % when used. There is one attempt more than there are waits. Default: the profile’s.`,
          example: profiles.default.retryWaitsMs,
        }),
      tenant_id: z
        .string({ error: 'tenant_id is 1 – 64 of the characters A-Z a-z 0-9 . _ -' })
        .regex(tenantIdPattern, 'tenant_id is 1 – 64 of the characters A-Z a-z 0-9 . _ -')
        .optional()
        .meta({
          description: 'The tenant that owns the endpoint. A service key may name any, by default `default`.',
          example: 'default',
        }),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? 'Send a JSON object with url and events' : undefined) },
  )
  .meta({ id: 'NewEndpoint', description: 'An endpoint to create.' });
export type NewEndpointBody = z.infer<typeof newEndpointDto>;

export const endpointDto = z
  .object({
    id: z.string().meta({ description: '`we_…`', example: 'we_01KC0000000000000000000001' }),
    tenant_id: z.string().meta({ description: 'The tenant that owns it.', example: 'default' }),
    url: z.string().meta({ description: 'Where events are posted.', example: 'https://hooks.example.com/posthorn' }),
    events: z.array(z.string()).meta({ description: 'The types it wants, as given.', example: ['invoice.*'] }),
    description: z.string().nullable().describe('As given, or null.'),
    profile: z.string().meta({ description: 'Its preset.', example: 'default' }),
    timeout_ms: z.int().meta({ description: 'Milliseconds for one attempt.', example: profiles.default.timeoutMs }),
    retry_waits_ms: z
      .array(z.int())
      .nullable()
      .describe('Milliseconds to wait after each failed attempt. Null: the profile’s schedule.'),
    status: z.enum(endpointStatuses).describe('Only an `active` endpoint gets new deliveries.'),
    status_reason: z
      .string()
      .nullable()
      .describe('Why it has this status, such as `gone` after an answer 410; null while there is nothing to say.'),
    status_changed_at: timestamp().describe('Since when it has this status.'),
    created_at: timestamp().describe('When it was created.'),
    updated_at: timestamp().describe('When its settings last changed.'),
  })
  .meta({ id: 'Endpoint', description: 'A subscription: where events go, and which.' });

export const createdEndpointDto = endpointDto
  .extend({
    secret: z.string().meta({
      description: 'Signs every request: `whsec_` and base64. Shown here and never again.',
      example: 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    }),
  })
  .meta({ id: 'CreatedEndpoint', description: 'The endpoint with its secret.' });

export const endpointListDto = listOf(endpointDto).meta({ id: 'EndpointList', description: 'A page of endpoints.' });
export const endpointQuery = z.strictObject(pageQuery);
export type EndpointQuery = z.infer<typeof endpointQuery>;

export function toEndpoint(row: EndpointRow): z.infer<typeof endpointDto> {
  return {
    id: row.id,
    tenant_id: row.tenant_id,
    url: row.url,
    events: row.events,
    description: row.description,
    profile: row.profile,
    timeout_ms: row.timeout_ms,
    retry_waits_ms: row.retry_waits_ms,
    status: row.status,
    status_reason: row.status_reason,
    status_changed_at: row.status_changed_at.toISOString(),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}
