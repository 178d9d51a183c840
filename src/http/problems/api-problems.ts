import { applyDecorators } from '@nestjs/common';
import { ApiResponse } from '@nestjs/swagger';
import { z } from 'zod';
import { referTo } from '../openapi-schemas.js';
import { Problem, problemTitles, type ProblemCode } from './problem.js';

export const problemDto = z
  .object({
    type: z.string().describe('`urn:posthorn:problem:<code>`.'),
    title: z.string().describe('The code in words; the same for every problem with this code.'),
    status: z.int().min(400).max(599).describe('The HTTP status.'),
    code: z
      .enum(Object.keys(problemTitles) as [ProblemCode, ...ProblemCode[]])
      .describe('Stable: programs may rely on it.'),
    detail: z.string().describe('What is wrong with this request and what would be right.'),
    field: z.string().optional().describe('The field, header or parameter at fault, where there is one.'),
    errors: z
      .array(
        z.object({
          field: z.string().nullable().describe('The field at fault, or null for the body as a whole.'),
          detail: z.string().describe('What is wrong with it.'),
        }),
      )
      .optional()
      .describe('All faults, where there are several; the first of them is the one above.'),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details.' });

/** What each status means, with the codes it comes with and an example. */
const answers: Readonly<Record<number, readonly [meaning: string, codes: readonly ProblemCode[], example: Problem]>> = {
  400: [
    'The body or the request is not well-formed',
    ['malformed_json', 'invalid_encoding', 'invalid_request'],
    new Problem(400, 'malformed_json', "The body is not valid JSON: expected ',' or '}' at line 1, column 24"),
  ],
  401: [
    'The API key is missing or wrong',
    ['unauthorized'],
    new Problem(401, 'unauthorized', 'Send the header Authorization: Bearer <API key>', { field: 'Authorization' }),
  ],
  403: [
    'The API key belongs to another tenant',
    ['tenant_forbidden'],
    new Problem(403, 'tenant_forbidden', 'This API key acts for its own tenant only: leave tenant_id out', {
      field: 'tenant_id',
    }),
  ],
  404: [
    'There is no such thing, or it is another tenant’s',
    ['not_found'],
    new Problem(404, 'not_found', "There is no delivery 'whd_01KC0000000000000000000000'"),
  ],
  409: [
    'What is there already does not allow it',
    [
      'idempotency_conflict',
      'event_id_conflict',
      'delivery_closed',
      'letter_resolved',
      'endpoint_unavailable',
      'replay_closed',
      'already_verified',
      'too_many_secrets',
      'secret_in_use',
      'endpoint_state_conflict',
    ],
    new Problem(409, 'delivery_closed', 'The delivery is succeeded already: there is nothing to cancel'),
  ],
  412: [
    'It was changed since it was read: read it again',
    ['precondition_failed'],
    new Problem(412, 'precondition_failed', 'The endpoint has the ETag "3" now: read it again, and repeat the change', {
      field: 'If-Match',
    }),
  ],
  413: [
    'Too large',
    ['too_large', 'too_many_events'],
    new Problem(413, 'too_large', 'This call takes a body of at most 262144 bytes (POSTHORN_HTTP_BODY_LIMIT_BYTES)'),
  ],
  415: [
    'Not JSON',
    ['unsupported_media_type'],
    new Problem(415, 'unsupported_media_type', 'Send JSON with the header Content-Type: application/json', {
      field: 'Content-Type',
    }),
  ],
  422: [
    'A field, header or parameter is not valid; `field` names it',
    [
      'missing_field',
      'invalid_field',
      'unknown_field',
      'duplicate_field',
      'too_deep',
      'invalid_schema',
      'invalid_conversion',
      'schema_mismatch',
      'unregistered_type',
      'catalogue_full',
      'invalid_url',
      'invalid_idempotency_key',
      'replay_too_large',
    ],
    new Problem(422, 'missing_field', 'type is missing: send a dotted name such as invoice.paid', { field: 'type' }),
  ],
  429: [
    'Too many at once; repeat it after `Retry-After` seconds',
    ['too_many_requests'],
    new Problem(429, 'too_many_requests', 'An endpoint is called by hand at most once a second: wait a second'),
  ],
  503: [
    'The database is away; nothing was stored. Repeat the request after `Retry-After` seconds, with the same Idempotency-Key',
    ['database_unavailable'],
    new Problem(
      503,
      'database_unavailable',
      'The request was not confirmed by the database. Repeat it in a moment, with the same Idempotency-Key',
    ),
  ],
};

const headersOf: Readonly<Record<number, object>> = {
  401: { 'WWW-Authenticate': { description: 'The scheme to use.', schema: { type: 'string' } } },
  429: { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } } },
  503: { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } } },
};

/** Documents the problems that an operation may answer, besides 401 and 503, which every call under /v1 may. */
export function ApiProblems(...statuses: readonly number[]): MethodDecorator {
  const all = [...new Set([...statuses, 401, 503])].sort((a, b) => a - b);
  return applyDecorators(...all.map(problemResponse));
}

function problemResponse(status: number): MethodDecorator {
  const [meaning, codes, example] = answers[status] ?? ['', [], new Problem(status, 'invalid_request', '')];
  const headers = headersOf[status];
  return ApiResponse({
    status,
    description: `${meaning} (${codes.map((code) => `\`${code}\``).join(', ')}).`,
    ...(headers ? { headers: headers as never } : {}),
    content: { 'application/problem+json': { schema: referTo(problemDto), example: example.toJSON() } },
  });
}
