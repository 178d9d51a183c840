import { z } from 'zod';
import { compileFilter, maxFilterBytes, maxFilterConditions, maxFilterDepth } from '../../domain/content-filter.js';
import { judgeHeaders, maxCustomHeaders, maxHeaderValueLength } from '../../domain/custom-headers.js';
import { isEventFilter, maxEventTypeLength } from '../../domain/event-type.js';
import {
  envelopeNames,
  maxTimeoutMs,
  minTimeoutMs,
  payloadNames,
  profileNames,
  profiles,
  signatureNames,
  verificationWays,
} from '../../domain/profiles.js';
import { isPin } from '../../domain/event-catalogue.js';
import { credentialSettings } from './endpoint-credentials.dto.js';
import { exampleSecret, judgeSecret, maxSecretBytes, minSecretBytes } from '../../domain/signing-secret.js';
import { pinRule } from './api-version.dto.js';
import { printableName } from '../../http/problems/problem.js';
import { freeText } from '../../http/text.dto.js';

const minute = 60_000;
const day = 24 * 60 * minute;

const minRetryWaitMs = 100;
const maxRetryWaitMs = day;
const maxFilters = 100;
const maxRetryWaits = 20;
const maxDescriptionLength = 500;
const maxMetadata = 50;
const maxMetadataValueLength = 500;
const metadataKey = /^[A-Za-z0-9._:-]{1,64}$/;
const maxRate = 10_000;
const maxInFlightLimit = 1_000;
const maxExpiryYears = 10;
const maxEmailLength = 254;
const minPingIntervalMs = minute;
const maxPingIntervalMs = day;

const urlRule = 'url must be the https URL to deliver to, such as https://hooks.example.com/posthorn';
const filterRule =
  'must be a dotted event type such as invoice.paid, a pattern with * for whole segments such as invoice.*, or * for all';
const eventsRule = "events must be a list of event types, such as ['invoice.paid'], or ['*'] for all";
const waitsRule = `retry_waits_ms is a list of 1 – ${maxRetryWaits} whole numbers of milliseconds from ${minRetryWaitMs} to ${maxRetryWaitMs}, such as [60000, 300000], or null for the profile’s`;
const metadataRule = `metadata is an object of at most ${maxMetadata} texts of at most ${maxMetadataValueLength} characters, under names of 1 – 64 of A-Z a-z 0-9 . _ : -, such as {"team": "billing"}`;
export const expiryRule = `expires_at is a time in the future, within ${maxExpiryYears} years, in RFC 3339, such as 2027-01-31T12:00:00Z, or null for none`;
const emailRule = `owner_email is one e-mail address of at most ${maxEmailLength} ASCII characters, such as hooks@example.com, or null for none`;

const secretRule = `secret is whsec_ and the base64 of ${minSecretBytes} – ${maxSecretBytes} bytes, such as ${exampleSecret}`;
/** A secret that is brought along. What is refused is never repeated. */
export const importedSecret = z
  .string({ error: secretRule })
  .superRefine((text, context) => {
    const judged = judgeSecret(text);
    if (!judged.ok) context.addIssue({ code: 'custom', message: judged.rule });
  })
  .optional()
  .meta({
    description: `A secret of your own: \`whsec_\` and the base64 of ${minSecretBytes} – ${maxSecretBytes} bytes. By default one is made of 32 random bytes.`,
    example: exampleSecret,
  });

function whole(name: string, min: number, max: number, unit: string, example: number, absent: string) {
  const rule = `${name} is a whole number${unit} from ${min} to ${max}, such as ${example}, or null for ${absent}`;
  return z.int({ error: rule }).min(min, rule).max(max, rule).nullable();
}

function choice<const T extends readonly [string, ...string[]]>(name: string, values: T, absent: string) {
  return z.enum(values, { error: `${name} is one of ${values.join(', ')}, or null for ${absent}` }).nullable();
}

/**
 * A text by each name. Judged as it came: a schema of records would drop a name such as `__proto__` without a word.
 * `judge` returns the rule that is broken, with the name that breaks it.
 */
function texts(judge: (given: unknown) => { name: string | null; rule: string } | null) {
  const schema = z.unknown().superRefine((given, context) => {
    if (given === undefined || given === null) return;
    const fault = judge(given);
    if (!fault) return;
    const path = fault.name === null ? [] : [printableName(fault.name)];
    context.addIssue({ code: 'custom', path, message: fault.rule });
  });
  return schema as unknown as z.ZodType<Record<string, string> | null>;
}

function judgeMetadata(given: unknown): { name: string | null; rule: string } | null {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return { name: null, rule: metadataRule };
  const entries = Object.entries(given) as [string, unknown][];
  if (entries.length > maxMetadata) return { name: null, rule: metadataRule };
  const value = freeText('metadata', maxMetadataValueLength);
  const bad = entries.find(
    ([name, text]) => !metadataKey.test(name) || name === '__proto__' || !value.safeParse(text).success,
  );
  return bad ? { name: bad[0], rule: metadataRule } : null;
}

/** As it came: every name is one of the data's. */
const contentFilter = z.unknown().superRefine((given, context) => {
  if (given === undefined || given === null) return;
  const judged = compileFilter(given);
  if (judged.ok) return;
  context.addIssue({ code: 'custom', path: judged.place.split('.').slice(1), message: judged.rule });
}) as unknown as z.ZodType<Record<string, unknown> | null>;

function isExpiry(text: string): boolean {
  if (!z.iso.datetime({ offset: true }).safeParse(text).success) return false;
  const at = new Date(text).getTime();
  const latest = new Date();
  latest.setUTCFullYear(latest.getUTCFullYear() + maxExpiryYears);
  return at > Date.now() && at <= latest.getTime();
}

/** One address, as it may stand in a mail's header: no name beside it, nothing that could begin another line. */
function isEmail(text: string): boolean {
  const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
  const address = new RegExp(`^[A-Za-z0-9!#$%&'*+/=?^_\`{|}~.-]{1,64}@${label}(?:\\.${label})*$`);
  return text.length <= maxEmailLength && address.test(text);
}

export const requiredSettings = {
  url: z
    .string({ error: urlRule })
    // The URL parser would silently put another character in its place.
    .refine((text) => !/\p{Cs}/u.test(text), { error: urlRule, params: { code: 'invalid_url' } })
    .meta({
      description:
        'Where to POST. https and a public address, unless the configuration allows more; no fragment; at most 2,048 characters. A user name and password in it become `credentials`, and are never shown again.',
      example: 'https://hooks.example.com/posthorn',
    }),
  events: z
    .array(z.string({ error: filterRule }).refine(isEventFilter, filterRule), { error: eventsRule })
    .min(1, "events must name at least one event type, such as ['invoice.paid'], or '*' for all")
    .max(maxFilters, `events may name at most ${maxFilters} event types and patterns, such as ['invoice.*']`)
    .meta({
      description: `1 – ${maxFilters} filters of at most ${maxEventTypeLength} characters: exact names (\`invoice.paid\`), \`*\` for one segment (\`invoice.*\`), or \`*\` alone for all.`,
      example: ['invoice.*'],
    }),
};

/** Each may be left out, and null is its default. */
export const optionalSettings = {
  description: freeText('description', maxDescriptionLength)
    .nullable()
    .meta({
      description: `For people: at most ${maxDescriptionLength} characters.`,
      example: 'Billing, production',
    }),
  metadata: texts(judgeMetadata).meta({
    openapi: {
      type: 'object',
      additionalProperties: { type: 'string', maxLength: maxMetadataValueLength },
      maxProperties: maxMetadata,
      nullable: true,
    },
    description: `For your programs: at most ${maxMetadata} texts of at most ${maxMetadataValueLength} characters, under names of 1 – 64 of \`[A-Za-z0-9._:-]\`. Never sent anywhere.`,
    example: { team: 'billing' },
  }),
  profile: choice('profile', profileNames, 'default').meta({
    description:
      'The preset that fixes envelope, signature, schedule, timeout and verification together; each of them may be set alone. Default: `default`.',
    example: 'default',
  }),
  envelope: choice('envelope', envelopeNames, 'the profile’s').meta({
    description: 'The form of the body. Default: the profile’s.',
    example: 'default',
  }),
  signature: choice('signature', signatureNames, 'the profile’s').meta({
    description: 'The form of the signature. Default: the profile’s.',
    example: 'standard_webhooks',
  }),
  timeout_ms: whole(
    'timeout_ms',
    minTimeoutMs,
    maxTimeoutMs,
    ' of milliseconds',
    profiles.default.timeoutMs,
    'the profile’s',
  ).meta({
    description: `Milliseconds for one attempt, from dialling to the last byte of the answer, ${minTimeoutMs} – ${maxTimeoutMs}. Default: the profile’s.`,
    example: profiles.default.timeoutMs,
  }),
  retry_waits_ms: z
    .array(z.int({ error: waitsRule }).min(minRetryWaitMs, waitsRule).max(maxRetryWaitMs, waitsRule), {
      error: waitsRule,
    })
    .min(1, waitsRule)
    .max(maxRetryWaits, waitsRule)
    .nullable()
    .meta({
      description: `Milliseconds to wait after each failed attempt: 1 – ${maxRetryWaits} of ${minRetryWaitMs} – ${maxRetryWaitMs}, ±20 % when used. There is one attempt more than there are waits. Default: the profile’s.`,
      example: [...profiles.default.retryWaitsMs],
    }),
  verification: choice('verification', verificationWays, 'the profile’s').meta({
    description: 'How the endpoint shows that it wants our requests. Default: the profile’s ways, one after the other.',
    example: 'challenge',
  }),
  payload: choice('payload', payloadNames, 'full').meta({
    description:
      '`full`: the data as published. `thin`: only what names the event, for the consumer to fetch the rest. Default: `full`.',
    example: 'full',
  }),
  ...credentialSettings,
  headers: texts((given) => {
    const judged = judgeHeaders(given);
    return judged.ok ? null : judged;
  }).meta({
    openapi: {
      type: 'object',
      additionalProperties: { type: 'string', maxLength: maxHeaderValueLength },
      maxProperties: maxCustomHeaders,
      nullable: true,
    },
    description: `Headers of your own on every request to it: at most ${maxCustomHeaders}, values of at most ${maxHeaderValueLength} printable ASCII characters. Those that Posthorn or HTTP sets are refused. Kept encrypted; what may be a credential is shown as \`***\`, and that value, written back, keeps what is stored.`,
    example: { Authorization: 'Bearer 3f9a' },
  }),
  rate_limit_per_second: whole('rate_limit_per_second', 1, maxRate, ' of requests a second', 10, 'no limit').meta({
    description: `Requests a second at most, over all processes, 1 – ${maxRate}. What is more waits. Default: no limit.`,
    example: 10,
  }),
  max_in_flight: whole('max_in_flight', 1, maxInFlightLimit, ' of requests', 8, 'the configuration’s').meta({
    description: `Requests at the same time at most, in one worker process, 1 – ${maxInFlightLimit}. Default: the configuration’s.`,
    example: 8,
  }),
  expires_at: z
    .string({ error: expiryRule })
    .refine(isExpiry, expiryRule)
    .nullable()
    .meta({
      format: 'date-time',
      description: `When the endpoint expires: from then on it gets nothing, and what waits for it becomes dead letters. In the future, within ${maxExpiryYears} years. Default: never.`,
      example: '2027-01-31T12:00:00.000Z',
    }),
  owner_email: z
    .string({ error: emailRule })
    .refine(isEmail, emailRule)
    .nullable()
    .meta({
      description: `Who is told of trouble with the endpoint: one address of at most ${maxEmailLength} characters. Default: nobody.`,
      example: 'hooks@example.com',
    }),
  api_version: z.string({ error: pinRule }).refine(isPin, pinRule).nullable().meta({
    description:
      'The version of the data that it gets: of each type the newest that is not later than this day, or, where all are later, the oldest. `newest`: not pinned. Default: the newest version of all types now, or today where there is none.',
    example: '2026-01-31',
  }),
  filter: contentFilter.meta({
    openapi: { type: 'object', additionalProperties: true, nullable: true },
    description: `Which events of its types it wants, by their \`data\`: values, \`$eq $neq $in $nin $gt $gte $lt $lte $startsWith $endsWith $exist\`, \`$and $or $not\`. At most ${maxFilterBytes} bytes, ${maxFilterDepth} levels, ${maxFilterConditions} conditions and values. Default: all of them.`,
    example: { amount: { $gte: 100 }, customer: { country: { $in: ['DE', 'AT'] } } },
  }),
  ping_interval_ms: whole(
    'ping_interval_ms',
    minPingIntervalMs,
    maxPingIntervalMs,
    ' of milliseconds',
    3_600_000,
    'no pings',
  ).meta({
    description: `Milliseconds between pings, which find out whether it answers, ${minPingIntervalMs} – ${maxPingIntervalMs}. Default: no pings.`,
    example: 3_600_000,
  }),
};
