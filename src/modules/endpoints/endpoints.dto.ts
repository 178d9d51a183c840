import { z } from 'zod';
import type { EndpointRow } from '../../database/endpoint-store.js';
import { endpointStatuses } from '../../domain/closed-lists.js';
import { effectiveSettings } from '../../domain/endpoint-settings.js';
import { tenantIdPattern } from '../../domain/ids.js';
import { envelopeNames, payloadNames, profiles, signatureNames, verificationWays } from '../../domain/profiles.js';
import { examplePublicKey, exampleSecret } from '../../domain/signing-secret.js';
import { listOf, pageQuery } from '../../http/page.dto.js';
import { timestamp } from '../../http/text.dto.js';
import {
  shownCertificateDto,
  type ShownCertificate,
  shownCredentialsDto,
  type ShownCredentials,
} from './endpoint-credentials.dto.js';
import { importedSecret, optionalSettings, requiredSettings } from './endpoint-settings.dto.js';

const tenantRule = 'tenant_id is 1 – 64 of the characters A-Z a-z 0-9 . _ -, such as default';

export const newEndpointDto = z
  .strictObject(
    {
      ...requiredSettings,
      ...z.object(optionalSettings).partial().shape,
      secret: importedSecret,
      tenant_id: z.string({ error: tenantRule }).regex(tenantIdPattern, tenantRule).optional().meta({
        description: 'The tenant that owns the endpoint. A service key may name any, by default `default`.',
        example: 'default',
      }),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? 'Send a JSON object with url and events' : undefined) },
  )
  .meta({ id: 'NewEndpoint', description: 'An endpoint to create. What is null or left out has its default.' });
export type NewEndpointBody = z.infer<typeof newEndpointDto>;

/** The same fields by the same rules: a change passes every check that a creation passes. */
export const endpointPatchDto = z
  .strictObject(z.object({ ...requiredSettings, ...optionalSettings }).partial().shape, {
    error: (issue) =>
      issue.code === 'invalid_type'
        ? 'Send a JSON object with the settings to change, such as {"description": "Billing"}'
        : undefined,
  })
  .meta({
    id: 'EndpointPatch',
    description:
      'Settings to change (RFC 7396): what is left out stays, null brings the default back. `events`, `retry_waits_ms`, `metadata`, `headers` and `filter` are replaced as a whole.',
  });
export type EndpointPatchBody = z.infer<typeof endpointPatchDto>;

const verificationStatuses = ['pending', 'verified', 'not_required', 'expired'] as const;
type VerificationStatus = (typeof verificationStatuses)[number];

const verificationStateDto = z
  .object({
    status: z
      .enum(verificationStatuses)
      .describe(
        '`pending`: asked until it passes. `verified`. `not_required`: active without it. `expired`: not passed in time; `…/verify` begins anew.',
      ),
    tries: z.int().describe('How often it was asked.'),
    next_try_at: timestamp().nullable().describe('When it is asked next; null: not at all.'),
    last_try_at: timestamp().nullable().describe('When it was asked last.'),
    last_way: z.string().nullable().describe('By which way it was asked last: `challenge`, `handshake` or `ping`.'),
    last_status_code: z.int().nullable().describe('The HTTP status of its last answer.'),
    last_error: z.string().nullable().describe('Why the last try did not pass.'),
    last_answer: z.string().nullable().describe('The beginning of its last answer.'),
    verified_at: timestamp().nullable().describe('When it passed, or was let in without.'),
    verified_way: z.string().nullable().describe('By which way it passed.'),
  })
  .meta({ id: 'VerificationState', description: 'How far its verification is.' });

const effectiveDto = z
  .object({
    envelope: z.enum(envelopeNames).describe('The form of the body.'),
    signature: z.enum(signatureNames).describe('The form of the signature.'),
    timeout_ms: z.int().describe('Milliseconds for one attempt.'),
    retry_waits_ms: z.array(z.int()).describe('Milliseconds to wait after each failed attempt.'),
    max_in_flight: z.int().describe('Requests at the same time, in one worker process.'),
    rate_limit_per_second: z
      .number()
      .nullable()
      .describe(
        'Requests a second: its own limit, or what it allowed in a handshake where that is less. Null: no limit.',
      ),
  })
  .meta({ id: 'EffectiveSettings', description: 'What counts: as set, else by the profile and the configuration.' });

export const endpointDto = z
  .object({
    id: z.string().meta({ description: '`we_…`', example: 'we_01KC0000000000000000000001' }),
    tenant_id: z.string().meta({ description: 'The tenant that owns it.', example: 'default' }),
    url: z.string().meta({ description: 'Where events are posted.', example: 'https://hooks.example.com/posthorn' }),
    events: z.array(z.string()).meta({ description: 'The types it wants, as given.', example: ['invoice.*'] }),
    description: z.string().nullable().describe('As given, or null.'),
    metadata: z.record(z.string(), z.string()).meta({
      openapi: { additionalProperties: { type: 'string' } },
      description: 'As given.',
      example: { team: 'billing' },
    }),
    profile: z.string().meta({ description: 'Its preset.', example: 'default' }),
    envelope: z.enum(envelopeNames).nullable().describe('The form of the body. Null: the profile’s.'),
    signature: z.enum(signatureNames).nullable().describe('The form of the signature. Null: the profile’s.'),
    timeout_ms: z.int().nullable().meta({
      description: 'Milliseconds for one attempt. Null: the profile’s.',
      example: profiles.default.timeoutMs,
    }),
    retry_waits_ms: z
      .array(z.int())
      .nullable()
      .describe('Milliseconds to wait after each failed attempt. Null: the profile’s schedule.'),
    verification: z.enum(verificationWays).nullable().describe('How it is verified. Null: by the profile’s ways.'),
    payload: z.enum(payloadNames).describe('Whether the data go out, or only what names the event.'),
    headers: z
      .record(z.string(), z.string())
      .nullable()
      .meta({
        description:
          'Its own headers; a value that may be a credential is `***`. Null: they can’t be decrypted, since their key is gone from the key ring.',
        example: { Authorization: '***' },
      }),
    credentials: shownCredentialsDto.nullable().describe('What goes along with every request. Null: nothing.'),
    client_certificate: shownCertificateDto.nullable().describe('Shown in the TLS handshake. Null: none.'),
    public_key: z.string().nullable().meta({
      description:
        'Verifies its Ed25519 signatures: `whpk_` and base64 of the current key; `/.well-known/webhook-keys/{id}` has them all. Null: it has no such key.',
      example: examplePublicKey,
    }),
    rate_limit_per_second: z.int().nullable().describe('Requests a second at most. Null: no limit.'),
    allowed_rate_per_minute: z
      .int()
      .nullable()
      .describe('Requests a minute that the endpoint itself allowed in a handshake. Null: it named none.'),
    max_in_flight: z.int().nullable().describe('Requests at the same time at most. Null: the configuration’s.'),
    expires_at: timestamp().nullable().describe('When it expires. Null: never.'),
    owner_email: z.string().nullable().describe('Who is told of trouble. Null: nobody.'),
    ping_interval_ms: z.int().nullable().describe('Milliseconds between pings. Null: no pings.'),
    api_version: z.string().meta({
      description: 'The version of the data that it is pinned to, or `newest`.',
      example: '2026-01-31',
    }),
    filter: z.any().meta({
      description: 'Which events of its types it wants, by their data. Null: all.',
      example: { amount: { $gte: 100 } },
    }),
    effective: effectiveDto,
    verification_state: verificationStateDto,
    status: z.enum(endpointStatuses).describe('Only an `active` endpoint is sent to.'),
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
      description:
        'Signs every request, unless its `signature` is by Ed25519: `whsec_` and base64. Shown here and never again.',
      example: exampleSecret,
    }),
  })
  .meta({ id: 'CreatedEndpoint', description: 'The endpoint with its secret.' });

export const endpointListDto = listOf(endpointDto).meta({ id: 'EndpointList', description: 'A page of endpoints.' });
export const endpointQuery = z.strictObject(pageQuery);
export type EndpointQuery = z.infer<typeof endpointQuery>;

/** What an endpoint's answer needs beside its row. */
export interface EndpointView {
  /** Masked; null where they can't be decrypted. */
  readonly headers: Readonly<Record<string, string>> | null;
  /** Masked. */
  readonly credentials: ShownCredentials | null;
  readonly client_certificate: ShownCertificate | null;
  /** The configuration's schedule, for trials. */
  readonly retryWaitsMs: readonly number[] | null;
  readonly maxInFlight: number;
}

export function toEndpoint(row: EndpointRow, view: EndpointView): z.infer<typeof endpointDto> {
  return {
    id: row.id,
    tenant_id: row.tenant_id,
    url: row.url,
    events: row.events,
    description: row.description,
    metadata: JSON.parse(row.metadata) as Record<string, string>,
    profile: row.profile,
    envelope: row.envelope,
    signature: row.signature,
    timeout_ms: row.timeout_ms,
    retry_waits_ms: row.retry_waits_ms,
    verification: row.verification,
    payload: row.payload,
    headers: view.headers,
    credentials: view.credentials,
    client_certificate: view.client_certificate,
    public_key: row.public_key,
    rate_limit_per_second: row.rate_limit_per_second,
    allowed_rate_per_minute: row.allowed_rate_per_minute,
    max_in_flight: row.max_in_flight,
    expires_at: row.expires_at?.toISOString() ?? null,
    owner_email: row.owner_email,
    ping_interval_ms: row.ping_interval_ms,
    api_version: row.api_version,
    filter: row.filter === null ? null : (JSON.parse(row.filter) as unknown),
    effective: toEffective(row, view),
    verification_state: toVerificationState(row),
    status: row.status,
    status_reason: row.status_reason,
    status_changed_at: row.status_changed_at.toISOString(),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

function toEffective(row: EndpointRow, view: EndpointView): z.infer<typeof effectiveDto> {
  const set = {
    profile: row.profile,
    envelope: row.envelope,
    signature: row.signature,
    timeoutMs: row.timeout_ms,
    retryWaitsMs: row.retry_waits_ms,
  };
  const { envelope, signature, timeoutMs, retryWaitsMs } = effectiveSettings(set, view.retryWaitsMs);
  return {
    envelope,
    signature,
    timeout_ms: timeoutMs,
    retry_waits_ms: [...retryWaitsMs],
    max_in_flight: row.max_in_flight ?? view.maxInFlight,
    rate_limit_per_second: effectiveRate(row),
  };
}

function effectiveRate({ rate_limit_per_second: own, allowed_rate_per_minute: allowed }: EndpointRow): number | null {
  if (allowed === null) return own;
  const allowedPerSecond = Math.round((allowed / 60) * 1_000) / 1_000;
  return own === null ? allowedPerSecond : Math.min(own, allowedPerSecond);
}

function toVerificationState(row: EndpointRow): z.infer<typeof verificationStateDto> {
  return {
    status: verificationStatus(row),
    tries: row.tries ?? 0,
    next_try_at: row.next_try_at?.toISOString() ?? null,
    last_try_at: row.last_try_at?.toISOString() ?? null,
    last_way: row.last_way,
    last_status_code: row.last_status_code,
    last_error: row.last_error,
    last_answer: row.last_answer,
    verified_at: row.verified_at?.toISOString() ?? null,
    verified_way: row.verified_way,
  };
}

function verificationStatus(row: EndpointRow): VerificationStatus {
  if (row.verified_way !== null) return 'verified';
  if (row.verified_at !== null) return 'not_required';
  return row.status_reason === 'verification_expired' ? 'expired' : 'pending';
}
