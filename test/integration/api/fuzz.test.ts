import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { rawRequest, type RunningApi, startApi } from '../../support/api.js';
import { jsonText } from '../../support/json-text.js';
import { makeLetters } from '../../support/letters.js';
import { resourceOf, routes } from '../../support/routes.js';
import { testKey } from '../../support/posthorn.js';

let posthorn: RunningApi;
/** By resource. */
let ids: Record<string, string>;

beforeAll(async () => {
  posthorn = await startApi();
  const { api, core } = posthorn;
  const { id } = await api.createEndpoint('http://127.0.0.1:9/hook', ['known.type']);
  const event = await api.publish('known.type');
  await makeLetters(posthorn, id, 'known.type', 1);
  ids = {
    events: event.id,
    'webhooks/subscriptions': id,
    'webhook-deliveries': event.deliveries[0]!.id,
    'dead-letters': (await api.get('/v1/dead-letters')).body.data[0].id,
    replays: (await api.post('/v1/dead-letters/replay', { filter: { endpoint_id: id } })).body.id,
  };
  const notice = { endpointId: id, type: 'endpoint.failing', episode: 'now', data: {} } as const;
  await core.notices.create(core.db.manager, notice);
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

const knownNames = fc.constantFrom('dry_run', ...new Set(routes.flatMap(({ parameters }) => parameters)));
const query = fc
  .array(fc.tuple(fc.oneof({ weight: 3, arbitrary: knownNames }, encoded), encoded), { maxLength: 3 })
  .map((pairs) => (pairs.length === 0 ? '' : `?${pairs.map(([name, value]) => `${name}=${value}`).join('&')}`))
  // A wait that is honoured is no fault, but takes its time.
  .filter((text) => !/wait=10s/.test(text));

/** Every path there is, with an id of each kind or something odd in its place. */
const known = fc
  .tuple(fc.constantFrom(...new Set(routes.map(({ path }) => path))), fc.oneof(encoded, fc.constant(':id')), encoded)
  .map(([path, id, secretId]) =>
    path.replace('{id}', id === ':id' ? `:${resourceOf(path)}` : id).replace('{secret_id}', secretId),
  );
const path = fc.oneof(
  { weight: 4, arbitrary: known },
  fc.constantFrom('/healthz', '/readyz', '/metrics', '/openapi.json', '/docs', '/v1', '/'),
  fc
    .tuple(
      fc.constantFrom(...new Set(routes.map(({ path }) => `/v1/${resourceOf(path)}/`)), '/v1/', '/docs/', '/'),
      encoded,
      fc.constantFrom('', '', '/', '/attempts', '/replay', '/cancel', '/%00'),
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
const replayFields = fc.constantFrom(
  'delivery_ids',
  'letter_ids',
  'filter',
  'since',
  'dry_run',
  'rate_per_second',
  'order',
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
  { type: 'known.type' },
  { endpoint_id: 'we_1', created_after: '2026-01-31T12:00:00Z' },
  ['whd_01KC0000000000000000000000'],
  ['whd_01KC0000000000000000000000.1'],
);
const objectBody = fc
  .array(
    fc.tuple(
      fc.oneof(eventFields, endpointFields, replayFields, oddText),
      fc.oneof(plausible, oddText, fc.jsonValue()),
    ),
  )
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

it('knows an id of every resource that has them', () => {
  const ofOne = routes.filter((route) => route.path.includes('{id}'));
  expect([...new Set(ofOne.map(({ path }) => resourceOf(path)))].sort()).toEqual(Object.keys(ids).sort());
});

it('no request ever breaks it', async () => {
  await fc.assert(
    fc.asyncProperty(request, async (given) => {
      const filled = Object.entries(ids).reduce((text, [name, id]) => text.replace(`/:${name}`, `/${id}`), given.path);
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
    { numRuns: 2_500, interruptAfterTimeLimit: 45_000, markInterruptAsFailure: false },
  );
});
