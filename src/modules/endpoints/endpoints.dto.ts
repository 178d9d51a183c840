import { z } from 'zod';
import type { EndpointRow } from '../../database/endpoint-store.js';
import { endpointStatuses } from '../../domain/closed-lists.js';
import { isEventFilter } from '../../domain/event-type.js';
import { tenantIdPattern } from '../../domain/ids.js';
import { maxTimeoutMs, minTimeoutMs, profiles, type ProfileName } from '../../domain/profiles.js';
import { listOf, pageQuery } from '../../http/page.dto.js';

const profileNames = Object.keys(profiles) as [ProfileName, ...ProfileName[]];
const maxRetryWaitMs = 24 * 60 * 60 * 1_000;

export const newEndpointDto = z
  .strictObject({
    url: z
      .string({ error: 'url must be the https URL to deliver to, such as https://example.com/webhooks' })
      .max(2_048)
      .describe('https, and an address that may be dialled. At most 2,048 characters.'),
    events: z
      .array(
        z
          .string()
          .refine(
            isEventFilter,
            'must be a dotted event type such as invoice.paid, a pattern such as invoice.*, or * for all',
          ),
        { error: "events must be a list of event types, such as ['invoice.paid'], or ['*'] for all" },
      )
      .min(1, "events must name at least one event type, or '*' for all")
      .max(100)
      .describe('Exact names, `*` for one segment (`invoice.*`), or `*` alone for all.'),
    description: z.string().max(500).nullish(),
    profile: z.enum(profileNames, { error: `profile is one of ${profileNames.join(', ')}` }).default('default'),
    timeout_ms: z
      .int()
      .min(minTimeoutMs)
      .max(maxTimeoutMs)
      .optional()
      .describe(`Time for one attempt, ${minTimeoutMs} – ${maxTimeoutMs}. Default: the profile’s.`),
    retry_waits_ms: z
      .array(z.int().min(100).max(maxRetryWaitMs))
      .min(1)
      .max(20)
      .nullish()
      .describe('Waits after failed attempts; one attempt more than waits. Default: the profile’s.'),
    tenant_id: z
      .string()
      .regex(tenantIdPattern, 'tenant_id is 1 – 64 of the characters A-Z a-z 0-9 . _ -')
      .optional()
      .describe('With a service key: the tenant that owns the endpoint. Default `default`.'),
  })
  .meta({ id: 'NewEndpoint' });
export type NewEndpointBody = z.infer<typeof newEndpointDto>;

const timestamp = z.string().describe('RFC 3339, UTC, milliseconds.');

export const endpointDto = z
  .object({
    id: z.string().describe('`we_…`'),
    tenant_id: z.string(),
    url: z.string(),
    events: z.array(z.string()),
    description: z.string().nullable(),
    profile: z.string(),
    timeout_ms: z.int(),
    retry_waits_ms: z.array(z.int()).nullable().describe('Null: the profile’s.'),
    status: z.enum(endpointStatuses),
    status_reason: z.string().nullable(),
    status_changed_at: timestamp,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Endpoint' });

export const createdEndpointDto = endpointDto
  .extend({ secret: z.string().describe('Signs every request. Shown here and never again.') })
  .meta({ id: 'CreatedEndpoint' });

export const endpointListDto = listOf(endpointDto).meta({ id: 'EndpointList' });
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
