import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RawRequest, rawBytes, rawRequest, type RunningApi, startApi } from '../../support/api.js';
import { testKey } from '../../support/posthorn.js';

let posthorn: RunningApi;

const limits = {
  POSTHORN_HTTP_BODY_LIMIT_BYTES: '4096',
  POSTHORN_HTTP_BATCH_LIMIT_BYTES: '16384',
  POSTHORN_HTTP_BATCH_LIMIT_EVENTS: '10',
};

beforeAll(async () => {
  posthorn = await startApi({ extra: limits });
  await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['*']);
});
afterAll(() => posthorn.stop());

const tables = ['events', 'deliveries', 'endpoints', 'endpoint_secrets', 'idempotency_keys', 'api_keys', 'attempts'];
async function rows(): Promise<string> {
  const counts = await Promise.all(
    tables.map(async (table) => (await posthorn.sql(`select count(*)::int as ${table} from ${table}`))[0]),
  );
  return JSON.stringify(counts);
}

interface Case {
  readonly method?: string;
  readonly path: string;
  readonly body?: string | Uint8Array;
  readonly headers?: RawRequest['headers'];
  /** Without the usual key. */
  readonly noKey?: boolean;
  readonly status: number;
  readonly code: string;
  readonly field?: string;
  readonly detail?: RegExp;
}

const events = '/v1/events';
const batch = '/v1/events/batch';
const subscriptions = '/v1/webhooks/subscriptions';
const deliveries = '/v1/webhook-deliveries';
const someDelivery = `${deliveries}/whd_01KC0000000000000000000000`;
const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const endpoint = (fields: object): string => JSON.stringify({ url: 'http://127.0.0.1/', events: ['a'], ...fields });

/** 404 for what isn't there, 422 for what can't be meant, 400 for what can't be read. */
const cases: Record<string, Case> = {
  // Publishing.
  'no body': { method: 'POST', path: events, status: 400, code: 'malformed_json', detail: /empty.*type and data/ },
  'an empty body': { method: 'POST', path: events, body: '', status: 400, code: 'malformed_json' },
  'a body of spaces': { method: 'POST', path: events, body: ' \n', status: 400, code: 'malformed_json' },
  'half a body': {
    method: 'POST',
    path: events,
    body: '{"type":"a"',
    status: 400,
    code: 'malformed_json',
    detail: /line|end/,
  },
  'a comment': { method: 'POST', path: events, body: '{"type":"a",/**/"data":1}', status: 400, code: 'malformed_json' },
  'two values': { method: 'POST', path: events, body: '{"type":"a","data":1}{}', status: 400, code: 'malformed_json' },
  'single quotes': { method: 'POST', path: events, body: "{'type':'a'}", status: 400, code: 'malformed_json' },
  NaN: { method: 'POST', path: events, body: '{"type":"a","data":NaN}', status: 400, code: 'malformed_json' },
  'a raw NUL': { method: 'POST', path: events, body: '{"type":"a","data":"\0"}', status: 400, code: 'malformed_json' },
  'a byte order mark': {
    method: 'POST',
    path: events,
    body: '\ufeff{"type":"a","data":1}',
    status: 400,
    code: 'invalid_encoding',
  },
  'invalid UTF-8': {
    method: 'POST',
    path: events,
    body: Buffer.from([0x7b, 0xff, 0x7d]),
    status: 400,
    code: 'invalid_encoding',
  },
  'UTF-16': {
    method: 'POST',
    path: events,
    body: Buffer.from('{"type":"a","data":1}', 'utf16le'),
    status: 400,
    code: 'malformed_json',
  },
  'an array': { method: 'POST', path: events, body: '[]', status: 422, code: 'invalid_field' },
  'a string': { method: 'POST', path: events, body: '"x"', status: 422, code: 'invalid_field' },
  'no type': { method: 'POST', path: events, body: '{"data":1}', status: 422, code: 'missing_field', field: 'type' },
  'no data': { method: 'POST', path: events, body: '{"type":"a"}', status: 422, code: 'missing_field', field: 'data' },
  'a number as type': {
    method: 'POST',
    path: events,
    body: '{"type":1,"data":1}',
    status: 422,
    code: 'invalid_field',
    field: 'type',
  },
  'a bad type': {
    method: 'POST',
    path: events,
    body: '{"type":"a..b","data":1}',
    status: 422,
    code: 'invalid_field',
    field: 'type',
  },
  'a pattern as type': {
    method: 'POST',
    path: events,
    body: '{"type":"a.*","data":1}',
    status: 422,
    code: 'invalid_field',
    field: 'type',
  },
  'a long type': {
    method: 'POST',
    path: events,
    body: `{"type":"${'a'.repeat(129)}","data":1}`,
    status: 422,
    code: 'invalid_field',
    field: 'type',
    detail: /128/,
  },
  'a long id': {
    method: 'POST',
    path: events,
    body: `{"type":"a","data":1,"id":"${'i'.repeat(201)}"}`,
    status: 422,
    code: 'invalid_field',
    field: 'id',
    detail: /200/,
  },
  'NUL in an id': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1,"id":"a\\u0000"}',
    status: 422,
    code: 'invalid_field',
    field: 'id',
  },
  'a surrogate in a subject': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1,"subject":"\\ud800"}',
    status: 422,
    code: 'invalid_field',
    field: 'subject',
  },
  'a local time': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1,"created_at":"2026-01-31 12:00"}',
    status: 422,
    code: 'invalid_field',
    field: 'created_at',
  },
  'a day that is none': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1,"created_at":"2026-02-30T12:00:00Z"}',
    status: 422,
    code: 'invalid_field',
    field: 'created_at',
  },
  'an unknown field': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1,"topic":"x"}',
    status: 422,
    code: 'unknown_field',
    field: 'topic',
  },
  'data twice': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1,"data":2}',
    status: 422,
    code: 'duplicate_field',
    field: 'data',
  },
  'data twice, escaped': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1,"d\\u0061ta":2}',
    status: 422,
    code: 'duplicate_field',
    field: 'data',
  },
  'too deep': {
    method: 'POST',
    path: events,
    body: `{"type":"a","data":${'['.repeat(129)}${']'.repeat(129)}}`,
    status: 422,
    code: 'too_deep',
    field: 'data',
  },
  'too large': {
    method: 'POST',
    path: events,
    body: `{"type":"a","data":"${'x'.repeat(4096)}"}`,
    status: 413,
    code: 'too_large',
    detail: /4096 bytes .POSTHORN_HTTP_BODY_LIMIT_BYTES/,
  },
  'a bad dry_run': {
    method: 'POST',
    path: `${events}?dry_run=yes`,
    body: '{"type":"a","data":1}',
    status: 422,
    code: 'invalid_field',
    field: 'dry_run',
  },
  'dry_run twice': {
    method: 'POST',
    path: `${events}?dry_run=true&dry_run=false`,
    body: '{"type":"a","data":1}',
    status: 422,
    code: 'invalid_field',
    field: 'dry_run',
  },
  'an unknown parameter': {
    method: 'POST',
    path: `${events}?dryrun=true`,
    body: '{"type":"a","data":1}',
    status: 422,
    code: 'unknown_field',
    field: 'dryrun',
  },
  'text/plain': {
    method: 'POST',
    path: events,
    body: '{}',
    headers: { 'content-type': 'text/plain' },
    status: 415,
    code: 'unsupported_media_type',
    field: 'Content-Type',
  },
  'a form': {
    method: 'POST',
    path: events,
    body: 'type=a',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    status: 415,
    code: 'unsupported_media_type',
  },
  'a content type that is none': {
    method: 'POST',
    path: events,
    body: '{}',
    headers: { 'content-type': ';;;' },
    status: 415,
    code: 'unsupported_media_type',
  },
  'no content type': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1}',
    headers: { 'content-type': [] },
    status: 415,
    code: 'unsupported_media_type',
  },
  'gzip that nobody announced': {
    method: 'POST',
    path: events,
    body: Buffer.from([0x1f, 0x8b, 8, 0]),
    status: 400,
    code: 'invalid_encoding',
  },
  // Idempotency keys.
  'an empty key': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1}',
    headers: { 'idempotency-key': '' },
    status: 422,
    code: 'invalid_idempotency_key',
    field: 'Idempotency-Key',
  },
  'a key of 256': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1}',
    headers: { 'idempotency-key': 'k'.repeat(256) },
    status: 422,
    code: 'invalid_idempotency_key',
    field: 'Idempotency-Key',
    detail: /255/,
  },
  'a key with é': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1}',
    headers: { 'idempotency-key': 'caf\u00e9' },
    status: 422,
    code: 'invalid_idempotency_key',
  },
  'a key with a tab': {
    method: 'POST',
    path: batch,
    body: '{"events":[]}',
    headers: { 'idempotency-key': 'a\tb' },
    status: 422,
    code: 'invalid_idempotency_key',
  },
  // Batches.
  'a batch without events': {
    method: 'POST',
    path: batch,
    body: '{}',
    status: 422,
    code: 'missing_field',
    field: 'events',
  },
  'a bare array as batch': { method: 'POST', path: batch, body: '[]', status: 422, code: 'invalid_field' },
  'events of another type': {
    method: 'POST',
    path: batch,
    body: '{"events":{}}',
    status: 422,
    code: 'invalid_field',
    field: 'events',
  },
  'events twice': {
    method: 'POST',
    path: batch,
    body: '{"events":[],"events":[]}',
    status: 422,
    code: 'duplicate_field',
    field: 'events',
  },
  'a broken batch': {
    method: 'POST',
    path: batch,
    body: '{"events":[{"type":"a","data":1},',
    status: 400,
    code: 'malformed_json',
  },
  'no batch': { method: 'POST', path: batch, status: 400, code: 'malformed_json' },
  'eleven events': {
    method: 'POST',
    path: batch,
    body: `{"events":[${Array(11).fill('{"type":"a","data":1}').join(',')}]}`,
    status: 413,
    code: 'too_many_events',
    field: 'events',
    detail: /10 events.*11/,
  },
  'a batch too large': {
    method: 'POST',
    path: batch,
    body: `{"events":["${'x'.repeat(20_000)}"]}`,
    status: 413,
    code: 'too_large',
    detail: /16384 bytes .POSTHORN_HTTP_BATCH_LIMIT_BYTES/,
  },
  'a dry run of a batch': {
    method: 'POST',
    path: `${batch}?dry_run=true`,
    body: '{"events":[]}',
    status: 422,
    code: 'unknown_field',
    field: 'dry_run',
  },
  // Endpoints.
  'an endpoint without a body': {
    method: 'POST',
    path: subscriptions,
    status: 422,
    code: 'invalid_field',
    detail: /url and events/,
  },
  'an endpoint without a url': {
    method: 'POST',
    path: subscriptions,
    body: '{"events":["a"]}',
    status: 422,
    code: 'missing_field',
    field: 'url',
  },
  'an endpoint without events': {
    method: 'POST',
    path: subscriptions,
    body: '{"url":"http://127.0.0.1/"}',
    status: 422,
    code: 'missing_field',
    field: 'events',
  },
  'broken endpoint JSON': {
    method: 'POST',
    path: subscriptions,
    body: '{"url":"secret-here',
    status: 400,
    code: 'malformed_json',
    detail: /^(?!.*secret-here)/,
  },
  'an endpoint with a BOM': {
    method: 'POST',
    path: subscriptions,
    body: `\ufeff${endpoint({})}`,
    status: 400,
    code: 'invalid_encoding',
  },
  'an endpoint in Latin-1': {
    method: 'POST',
    path: subscriptions,
    body: Buffer.from(endpoint({ description: 'é' }), 'latin1'),
    status: 400,
    code: 'invalid_encoding',
  },
  'url twice': {
    method: 'POST',
    path: subscriptions,
    body: '{"url":"http://127.0.0.1/","url":"http://127.0.0.1/b","events":["a"]}',
    status: 422,
    code: 'duplicate_field',
    field: 'url',
  },
  'an endpoint too deep': {
    method: 'POST',
    path: subscriptions,
    body: '['.repeat(2000) + ']'.repeat(2000),
    status: 422,
    code: 'too_deep',
  },
  'no events': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ events: [] }),
    status: 422,
    code: 'invalid_field',
    field: 'events',
  },
  'a string as events': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ events: 'invoice.paid' }),
    status: 422,
    code: 'invalid_field',
    field: 'events',
    detail: /list/,
  },
  'a bad pattern': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ events: ['a', 'in*.paid'] }),
    status: 422,
    code: 'invalid_field',
    field: 'events.1',
    detail: /invoice\.\*/,
  },
  'a percent as pattern': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ events: ['a.%'] }),
    status: 422,
    code: 'invalid_field',
    field: 'events.0',
  },
  'a backslash as pattern': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ events: ['a\\'] }),
    status: 422,
    code: 'invalid_field',
    field: 'events.0',
  },
  'an unknown endpoint field': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ secrets: ['x'] }),
    status: 422,
    code: 'unknown_field',
    field: 'secrets',
  },
  'an unknown profile': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ profile: 'svix' }),
    status: 422,
    code: 'invalid_field',
    field: 'profile',
  },
  'a short timeout': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ timeout_ms: 10 }),
    status: 422,
    code: 'invalid_field',
    field: 'timeout_ms',
    detail: /1000/,
  },
  'a fraction as timeout': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ timeout_ms: 1000.5 }),
    status: 422,
    code: 'invalid_field',
    field: 'timeout_ms',
  },
  'waits that are none': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ retry_waits_ms: [] }),
    status: 422,
    code: 'invalid_field',
    field: 'retry_waits_ms',
  },
  'NUL in a description': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ description: 'a\0b' }),
    status: 422,
    code: 'invalid_field',
    field: 'description',
  },
  'a surrogate in a description': {
    method: 'POST',
    path: subscriptions,
    body: '{"url":"http://127.0.0.1/","events":["a"],"description":"\\udfff"}',
    status: 422,
    code: 'invalid_field',
    field: 'description',
  },
  'a surrogate in a url': {
    method: 'POST',
    path: subscriptions,
    body: '{"url":"http://127.0.0.1/\\udfff","events":["a"]}',
    status: 422,
    code: 'invalid_url',
    field: 'url',
  },
  'a tenant with a slash': {
    method: 'POST',
    path: subscriptions,
    body: endpoint({ tenant_id: 'a/b' }),
    status: 422,
    code: 'invalid_field',
    field: 'tenant_id',
  },
  'an unknown endpoint': {
    path: `${subscriptions}/we_01KC0000000000000000000000`,
    status: 404,
    code: 'not_found',
    detail: /endpoint 'we_01/,
  },
  'NUL in an endpoint id': { path: `${subscriptions}/we_%00`, status: 404, code: 'not_found' },
  'an endpoint id with quotes': {
    method: 'DELETE',
    path: `${subscriptions}/'%20or%20'1'='1`,
    status: 404,
    code: 'not_found',
  },
  // Deliveries.
  'an unknown delivery': { path: someDelivery, status: 404, code: 'not_found', detail: /delivery 'whd_01/ },
  'attempts of an unknown delivery': { path: `${someDelivery}/attempts`, status: 404, code: 'not_found' },
  'redelivery of an unknown delivery': {
    method: 'POST',
    path: `${someDelivery}/redeliver`,
    status: 404,
    code: 'not_found',
  },
  'cancellation of an unknown delivery': {
    method: 'POST',
    path: `${someDelivery}/cancel`,
    body: '{}',
    status: 404,
    code: 'not_found',
  },
  'a reason that is none': {
    method: 'POST',
    path: `${someDelivery}/cancel`,
    body: '{"reason":1}',
    status: 422,
    code: 'invalid_field',
    field: 'reason',
  },
  'a long reason': {
    method: 'POST',
    path: `${someDelivery}/redeliver`,
    body: JSON.stringify({ reason: 'r'.repeat(501) }),
    status: 422,
    code: 'invalid_field',
    field: 'reason',
    detail: /500/,
  },
  'NUL in a reason': {
    method: 'POST',
    path: `${someDelivery}/redeliver`,
    body: '{"reason":"\\u0000"}',
    status: 422,
    code: 'invalid_field',
    field: 'reason',
  },
  'a list as action': {
    method: 'POST',
    path: `${someDelivery}/redeliver`,
    body: '[]',
    status: 422,
    code: 'invalid_field',
  },
  'NUL in a delivery id': { path: `${deliveries}/whd_%00%00`, status: 404, code: 'not_found' },
  'a long delivery id': { path: `${deliveries}/whd_${'0'.repeat(5_000)}`, status: 404, code: 'not_found' },
  'bad percent-encoding': { path: `${deliveries}/%zz`, status: 400, code: 'invalid_request', detail: /percent/ },
  'percent-encoded Latin-1': { path: `${deliveries}/%ff`, status: 400, code: 'invalid_request' },
  'a bad wait': { path: `${someDelivery}?wait=soon`, status: 422, code: 'invalid_field', field: 'wait', detail: /10s/ },
  'a negative wait': { path: `${someDelivery}?wait=-1s`, status: 422, code: 'invalid_field', field: 'wait' },
  'a wait without a unit': { path: `${someDelivery}?wait=10`, status: 422, code: 'invalid_field', field: 'wait' },
  'two waits': { path: `${someDelivery}?wait=1s&wait=2s`, status: 422, code: 'invalid_field', field: 'wait' },
  'limit 0': { path: `${deliveries}?limit=0`, status: 422, code: 'invalid_field', field: 'limit', detail: /1 to 250/ },
  'limit 251': { path: `${deliveries}?limit=251`, status: 422, code: 'invalid_field', field: 'limit' },
  'limit -1': { path: `${subscriptions}?limit=-1`, status: 422, code: 'invalid_field', field: 'limit' },
  'limit 1.5': { path: `${subscriptions}?limit=1.5`, status: 422, code: 'invalid_field', field: 'limit' },
  'limit 1e2': { path: `${deliveries}?limit=1e2`, status: 422, code: 'invalid_field', field: 'limit' },
  'an empty limit': { path: `${deliveries}?limit=`, status: 422, code: 'invalid_field', field: 'limit' },
  'a huge limit': {
    path: `${deliveries}?limit=${'9'.repeat(400)}`,
    status: 422,
    code: 'invalid_field',
    field: 'limit',
  },
  'two limits': { path: `${deliveries}?limit=1&limit=2`, status: 422, code: 'invalid_field', field: 'limit' },
  'a cursor of nobody': { path: `${deliveries}?cursor=abc`, status: 422, code: 'invalid_field', field: 'cursor' },
  'NUL in a cursor': {
    path: `${deliveries}?cursor=${Buffer.from('next:\0').toString('base64url')}`,
    status: 422,
    code: 'invalid_field',
    field: 'cursor',
  },
  'a long cursor': {
    path: `${subscriptions}?cursor=${'a'.repeat(300)}`,
    status: 422,
    code: 'invalid_field',
    field: 'cursor',
  },
  'a bad attempt cursor': {
    path: `${someDelivery}/attempts?cursor=-1`,
    status: 422,
    code: 'invalid_field',
    field: 'cursor',
  },
  'an unknown status': {
    path: `${deliveries}?status=dead`,
    status: 422,
    code: 'invalid_field',
    field: 'status',
    detail: /pending, retrying/,
  },
  'NUL in a filter': { path: `${deliveries}?event_id=%00`, status: 422, code: 'invalid_field', field: 'event_id' },
  'NUL in another filter': {
    path: `${deliveries}?endpoint_id=we_%00`,
    status: 422,
    code: 'invalid_field',
    field: 'endpoint_id',
  },
  'a bad type filter': { path: `${deliveries}?type=a%00b`, status: 422, code: 'invalid_field', field: 'type' },
  'an unknown filter': { path: `${deliveries}?state=failed`, status: 422, code: 'unknown_field', field: 'state' },
  'NUL in a tenant': { path: `${subscriptions}?tenant_id=%00`, status: 422, code: 'invalid_field', field: 'tenant_id' },
  // Keys.
  'no API key': { path: deliveries, noKey: true, status: 401, code: 'unauthorized', field: 'Authorization' },
  'a wrong key': {
    path: deliveries,
    headers: { authorization: 'Bearer wrong-key-0123456789abcdef' },
    status: 401,
    code: 'unauthorized',
    field: 'Authorization',
  },
  'a key without Bearer': { path: deliveries, headers: { authorization: testKey }, status: 401, code: 'unauthorized' },
  'Basic instead of Bearer': {
    path: subscriptions,
    headers: { authorization: 'Basic dXNlcjpwYXNz' },
    status: 401,
    code: 'unauthorized',
  },
  'two keys in one header': {
    path: subscriptions,
    headers: { authorization: `Bearer ${testKey} ${testKey}` },
    status: 401,
    code: 'unauthorized',
  },
  'a key with é in it': {
    path: subscriptions,
    headers: { authorization: 'Bearer caf\u00e9' },
    status: 401,
    code: 'unauthorized',
  },
  'a key that is too long': {
    path: subscriptions,
    headers: { authorization: `Bearer ${'k'.repeat(4_000)}` },
    status: 401,
    code: 'unauthorized',
  },
  'publishing without a key': {
    method: 'POST',
    path: events,
    body: '{"type":"a","data":1}',
    noKey: true,
    status: 401,
    code: 'unauthorized',
  },
  // Paths and methods.
  'an unknown path': { path: '/v1/nothing', status: 404, code: 'not_found', detail: /\/docs/ },
  'an unknown path without a key': { path: '/admin.php', noKey: true, status: 404, code: 'not_found' },
  'no path': { path: '/', status: 404, code: 'not_found' },
  'NUL in a path': { path: '/v1/%00', status: 404, code: 'not_found' },
  'a path upwards': { path: '/v1/../../etc/passwd', status: 404, code: 'not_found' },
  'a path upwards, encoded': { path: '/docs/..%2f..%2fpackage.json', status: 404, code: 'not_found' },
  'a trailing slash': { path: `${subscriptions}/`, status: 404, code: 'not_found' },
  'a path in capitals': { path: '/V1/EVENTS', status: 404, code: 'not_found' },
  PUT: { method: 'PUT', path: events, body: '{}', status: 405, code: 'method_not_allowed', detail: /POST/ },
  'PATCH of a delivery': {
    method: 'PATCH',
    path: someDelivery,
    body: '{}',
    status: 405,
    code: 'method_not_allowed',
    detail: /GET/,
  },
  'GET of an action': { path: `${someDelivery}/cancel`, status: 405, code: 'method_not_allowed', detail: /POST/ },
  'DELETE of a list': { method: 'DELETE', path: deliveries, status: 405, code: 'method_not_allowed' },
  'a method that hardly anybody knows': {
    method: 'PROPFIND',
    path: deliveries,
    status: 405,
    code: 'method_not_allowed',
  },
};

describe('bad input is answered with a problem that says what would be right, and stores nothing', () => {
  it.each(Object.entries(cases))('%s', async (_, given) => {
    const { method = 'GET', path, body, noKey } = given;
    const headers: Record<string, string | string[]> = {
      ...(noKey ? {} : { authorization: `Bearer ${testKey}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...given.headers,
    };
    const stored = await rows();
    const answer = await rawRequest(posthorn.port, { method, path, headers, body });
    expect(answer, answer.text).toMatchObject({
      status: given.status,
      headers: { 'content-type': 'application/problem+json; charset=utf-8' },
      body: {
        type: `urn:posthorn:problem:${given.code}`,
        title: expect.any(String),
        status: given.status,
        code: given.code,
        detail: expect.stringMatching(given.detail ?? /\S/),
        ...(given.field === undefined ? {} : { field: given.field }),
      },
    });
    if (given.status === 401) expect(answer.headers['www-authenticate']).toBe('Bearer realm="posthorn"');
    if (given.status === 405) expect(answer.headers.allow).toMatch(/^[A-Z, ]+$/);
    expect(answer.text).not.toMatch(/ {4}at |node_modules|\.ts:|\.js:/);
    expect(answer.text.length).toBeLessThan(1_000);
    expect(await rows()).toBe(stored);
  });
});

describe('what is hardly HTTP', () => {
  it.each([
    ['rubbish', 'rubbish\r\n\r\n', 400],
    ['a bad header', `GET ${deliveries} HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n`, 400],
    ['NUL in a header', `GET ${deliveries} HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n`, 400],
    ['two lengths', `POST ${events} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx`, 400],
    [
      'a length and chunks',
      `POST ${events} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
    ],
    ['no host', `GET ${deliveries} HTTP/1.1\r\n\r\n`, 400],
    ['a flood of headers', `GET ${deliveries} HTTP/1.1\r\nHost: x\r\n${'X-Flood: yes\r\n'.repeat(3_000)}\r\n`, 431],
    ['one huge header', `GET ${deliveries} HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
  ])('is refused: %s', async (name, bytes, status) => {
    const stored = await rows();
    const answer = await rawBytes(posthorn.port, bytes);
    expect(answer).toContain(`HTTP/1.1 ${status} `);
    // Node itself answers a request without a host, before anybody is asked.
    if (name !== 'no host') {
      expect(answer).toContain('Content-Type: application/problem+json');
      expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ status, code: 'invalid_request' });
    }
    expect(await rows()).toBe(stored);
  });

  it('does not end the process', async () => {
    expect(await posthorn.api.get('/healthz')).toMatchObject({ status: 200 });
  });
});

describe('every route', () => {
  it.each([
    ['POST', events],
    ['POST', batch],
    ['POST', subscriptions],
    ['GET', subscriptions],
    ['GET', `${subscriptions}/we_1`],
    ['DELETE', `${subscriptions}/we_1`],
    ['GET', deliveries],
    ['GET', `${deliveries}/whd_1`],
    ['GET', `${deliveries}/whd_1/attempts`],
    ['POST', `${deliveries}/whd_1/redeliver`],
    ['POST', `${deliveries}/whd_1/cancel`],
  ])('wants a key: %s %s', async (method, path) => {
    const headers = method === 'POST' ? { 'content-type': 'application/json' } : {};
    const body = method === 'POST' ? utf8('{}') : undefined;
    expect((await rawRequest(posthorn.port, { method, path, headers, body })).status).toBe(401);
  });
});

it('names all faults of a request, the first of them on top', async () => {
  const answer = await posthorn.api.post(subscriptions, { url: 7, events: [], extra: 1 });
  expect(answer.status).toBe(422);
  expect(answer.body.field).toBe(answer.body.errors[0].field);
  expect(answer.body.errors.map(({ field }: { field: string }) => field).sort()).toEqual(['events', 'extra', 'url']);
});

it('answers HEAD as GET, without a body', async () => {
  const headers = { authorization: `Bearer ${testKey}` };
  const answer = await rawRequest(posthorn.port, { method: 'HEAD', path: deliveries, headers });
  expect(answer).toMatchObject({ status: 200, text: '' });
});
