import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { rawRequest, type RunningApi, startApi } from '../../support/api.js';
import { jsonText } from '../../support/json-text.js';
import { testKey } from '../../support/posthorn.js';

let posthorn: RunningApi;
let ids: { endpoint: string; delivery: string };

beforeAll(async () => {
  posthorn = await startApi();
  const { id } = await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['known.type']);
  const { deliveries } = await posthorn.api.publish('known.type');
  ids = { endpoint: id, delivery: deliveries[0]!.id };
});
afterAll(() => posthorn.stop());

const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom(
    '',
    '\0',
    '\ud800',
    '%',
    "'",
    '\\',
    '../..',
    'null',
    '-1',
    '1e309',
    '__proto__',
    'constructor',
    '[]',
    '😀',
  ),
  fc.constantFrom('x'.repeat(300), '9'.repeat(40), 'known.type', '*', 'true', '10s', 'failed', 'default'),
);
/** Percent-encoded as a client would, or bytes that no client should send. */
const encoded = fc.oneof(
  oddText.map((text) => encodeURIComponent(text.replace(/[\ud800-\udfff]/g, '?'))),
  fc.constantFrom('%00', '%ff', '%zz', '%', '%c0%80', '%ed%a0%80', '%2e%2e%2f', 'a%00b', '+', '~', '%25'),
);

const knownNames = fc.constantFrom(
  'limit',
  'cursor',
  'status',
  'endpoint_id',
  'event_id',
  'type',
  'wait',
  'tenant_id',
  'dry_run',
);
const query = fc
  .array(fc.tuple(fc.oneof({ weight: 3, arbitrary: knownNames }, encoded), encoded), { maxLength: 3 })
  .map((pairs) => (pairs.length === 0 ? '' : `?${pairs.map(([name, value]) => `${name}=${value}`).join('&')}`))
  // A wait that is honoured is no fault, but takes its time.
  .filter((text) => !/wait=10s/.test(text));

const path = fc.oneof(
  fc.constantFrom('/v1/events', '/v1/events/batch', '/v1/webhooks/subscriptions', '/v1/webhook-deliveries'),
  fc.constantFrom('/healthz', '/readyz', '/openapi.json', '/docs', '/v1', '/'),
  fc
    .tuple(
      fc.constantFrom('/v1/webhooks/subscriptions/', '/v1/webhook-deliveries/', '/v1/', '/docs/', '/'),
      fc.oneof(encoded, fc.constantFrom(':endpoint', ':delivery')),
      fc.constantFrom('', '', '/', '/attempts', '/redeliver', '/cancel', '/%00'),
      fc.constantFrom('', '', '', '/secrets', '/verify', '/test', '/consent/x', '/secrets/sec_1'),
    )
    .map((parts) => parts.join('')),
);

const eventFields = fc.constantFrom(
  'type',
  'data',
  'id',
  'created_at',
  'source',
  'subject',
  'api_version',
  'tenant_id',
  'events',
);
const endpointFields = fc.constantFrom(
  'url',
  'events',
  'description',
  'profile',
  'timeout_ms',
  'retry_waits_ms',
  'metadata',
  'envelope',
  'payload',
  'headers',
  'max_in_flight',
  'expires_at',
  'owner_email',
  'secret',
  'overlap_ms',
  'reason',
);
const plausible = fc.constantFrom(
  'known.type',
  'http://127.0.0.1/',
  'default',
  '2026-01-31T12:00:00Z',
  ['*'],
  1_000,
  [100],
  null,
);
const objectBody = fc
  .array(fc.tuple(fc.oneof(eventFields, endpointFields, oddText), fc.oneof(plausible, oddText, fc.jsonValue())))
  .map((entries) => JSON.stringify(Object.fromEntries(entries)));

const body = fc.oneof(
  fc.constant(undefined),
  objectBody,
  objectBody.map((text) => `{"events":[${text},${text}]}`),
  jsonText,
  jsonText.map((text) => `{"type":"known.type","data":${text}}`),
  jsonText.map((text) => `{"type":"known.type","data":1,"id":${text}}`),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.uint8Array({ maxLength: 40 }),
  fc.constantFrom('['.repeat(50_000), `${'['.repeat(5_000)}${']'.repeat(5_000)}`, '{"__proto__":{"url":1}}'),
);

const headerText = fc.oneof(
  fc.constantFrom(
    'application/json',
    'application/json; charset=utf-16',
    'application/merge-patch+json',
    'text/plain',
    '',
    ';',
    'application/json,',
    'x/y',
  ),
  fc.string({ unit: 'grapheme-ascii', maxLength: 20 }).map((text) => text.replace(/[^\x20-\x7e]/g, ' ')),
  fc.constantFrom('caf\u00e9', '\u00ff\u0080', 'k'.repeat(256), 'gzip', '*/*'),
);
const headers = fc.dictionary(
  fc.constantFrom(
    'content-type',
    'idempotency-key',
    'accept',
    'content-encoding',
    'x-request-id',
    'if-none-match',
    'if-match',
    'range',
  ),
  headerText,
  { maxKeys: 2 },
);
const authorization = fc.oneof(
  { weight: 8, arbitrary: fc.constant(`Bearer ${testKey}`) },
  headerText.map((text) => `Bearer ${text}`),
);
const method = fc.constantFrom('GET', 'GET', 'POST', 'POST', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS');

const request = fc.record({ method, path, query, body, headers, authorization });

it('no request ever breaks it', async () => {
  await fc.assert(
    fc.asyncProperty(request, async (given) => {
      const filled = given.path.replace(':endpoint', ids.endpoint).replace(':delivery', ids.delivery);
      const answer = await rawRequest(posthorn.port, {
        method: given.method,
        path: filled + given.query,
        body: given.method === 'GET' || given.method === 'HEAD' ? undefined : given.body,
        headers: {
          ...(given.body === undefined ? {} : { 'content-type': 'application/json' }),
          ...given.headers,
          authorization: given.authorization,
        },
      });
      expect(answer.status, answer.text).toBeLessThan(500);
      if (answer.status < 400 || given.method === 'HEAD') return;
      expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8');
      expect(answer.body).toMatchObject({
        status: answer.status,
        code: expect.any(String),
        detail: expect.any(String),
      });
      expect(answer.text).not.toMatch(/ {4}at |node_modules/);
    }),
    { numRuns: 1_500, interruptAfterTimeLimit: 45_000, markInterruptAsFailure: false },
  );
});
