import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dumpDatabase, rawRequest, type RunningApi, startApi } from '../../support/api.js';
import { testKey } from '../../support/posthorn.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

const path = '/v1/webhooks/subscriptions';
const url = 'http://127.0.0.1:9/hook';
const inOneYear = new Date(Date.now() + 365 * 86_400_000).toISOString();
const secret = `whsec_${Buffer.alloc(32, 'secret').toString('base64')}`;

/** Every setting, none of them the default. */
const all = {
  url: 'http://127.0.0.1:9/all?x=1',
  events: ['invoice.*', 'order.created'],
  description: 'Büro\n😀',
  metadata: { team: 'billing', 'a.b:c-d_e': '', constructor: 'yes' },
  profile: 'cloudevents',
  envelope: 'default',
  signature: 'standard_webhooks',
  timeout_ms: 1_000,
  retry_waits_ms: [100, 86_400_000],
  verification: 'handshake',
  payload: 'thin',
  headers: { 'X-Team': 'billing', Authorization: 'Bearer header-value-1' },
  rate_limit_per_second: 10_000,
  max_in_flight: 1_000,
  expires_at: inOneYear,
  owner_email: "o'hara+hooks@xn--bcher-kva.example",
  ping_interval_ms: 86_400_000,
};
const masked = { ...all, headers: { 'X-Team': 'billing', Authorization: '***' } };
/** What null or nothing means. */
const defaults = {
  description: null,
  metadata: {},
  profile: 'default',
  envelope: null,
  signature: null,
  timeout_ms: null,
  retry_waits_ms: null,
  verification: null,
  payload: 'full',
  headers: {},
  rate_limit_per_second: null,
  max_in_flight: null,
  expires_at: null,
  owner_email: null,
  ping_interval_ms: null,
};
const nulls = Object.fromEntries(Object.keys(defaults).map((name) => [name, null]));

describe('the settings of an endpoint', () => {
  it('come back as they were given, from its creation, alone and in the list', async () => {
    const made = await posthorn.api.post(path, all);
    expect(made.status, made.text).toBe(201);
    const { secret: _, ...endpoint } = made.body;
    expect(endpoint).toMatchObject(masked);
    expect((await posthorn.api.get(`${path}/${endpoint.id}`)).body).toEqual(endpoint);
    const [listed] = (await posthorn.api.get(`${path}?limit=1`)).body.data;
    expect(listed).toEqual(endpoint);
  });

  it('can all be changed, and all be set back by null', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    const changed = await posthorn.api.call('PATCH', `${path}/${id}`, all);
    expect(changed.status, changed.text).toBe(200);
    expect(changed.body).toMatchObject(masked);
    expect((await posthorn.api.get(`${path}/${id}`)).body).toEqual(changed.body);
    const reset = await posthorn.api.call('PATCH', `${path}/${id}`, nulls);
    expect(reset.status, reset.text).toBe(200);
    expect(reset.body).toMatchObject({ ...defaults, url: all.url, events: all.events });
    expect(reset.body.metadata).toEqual({});
    expect(reset.body.headers).toEqual({});
  });

  it('may be null at the creation, which is as if they were left out', async () => {
    const answer = await posthorn.api.post(path, { url, events: ['a'], ...nulls });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject(defaults);
  });

  it('that are null follow the profile, those that are set don’t', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['a'], { timeout_ms: 2_000 });
    const changed = await posthorn.api.call('PATCH', `${path}/${id}`, { profile: 'cloudevents' });
    expect(changed.body).toMatchObject({
      envelope: null,
      timeout_ms: 2_000,
      effective: {
        envelope: 'cloudevents',
        signature: 'standard_webhooks',
        timeout_ms: 2_000,
        retry_waits_ms: [30_000, 120_000, 900_000, 3_600_000, 14_400_000, 43_200_000],
        max_in_flight: 64,
        rate_limit_per_second: null,
      },
    });
    const alone = await posthorn.api.call('PATCH', `${path}/${id}`, {
      envelope: 'default',
      max_in_flight: 3,
      rate_limit_per_second: 7,
      timeout_ms: null,
    });
    expect(alone.body.effective).toMatchObject({
      envelope: 'default',
      signature: 'standard_webhooks',
      timeout_ms: 30_000,
      max_in_flight: 3,
      rate_limit_per_second: 7,
    });
  });

  it('count with what the configuration and the endpoint itself say', async () => {
    const other = await startApi({
      extra: { POSTHORN_DELIVERY_RETRY_WAITS: '1s,2s', POSTHORN_DELIVERY_MAX_IN_FLIGHT: '5' },
      databaseUrl: posthorn.databaseUrl,
    });
    try {
      const { id } = await posthorn.api.createEndpoint(url, ['a'], { rate_limit_per_second: 10 });
      await posthorn.sql('update endpoints set allowed_rate_per_minute = 90 where id = $1', [id]);
      const { body } = await other.api.get(`${path}/${id}`);
      expect(body).toMatchObject({ rate_limit_per_second: 10, allowed_rate_per_minute: 90, retry_waits_ms: null });
      expect(body.effective).toMatchObject({
        retry_waits_ms: [1_000, 2_000],
        max_in_flight: 5,
        rate_limit_per_second: 1.5,
      });
      await posthorn.sql('update endpoints set allowed_rate_per_minute = 6000 where id = $1', [id]);
      expect((await other.api.get(`${path}/${id}`)).body.effective.rate_limit_per_second).toBe(10);
    } finally {
      await other.stop();
    }
  });

  it.each([
    ['an expiry with an offset', { expires_at: inOneYear.replace('Z', '+00:00') }, { expires_at: inOneYear }],
    ['the least', { timeout_ms: 1_000, rate_limit_per_second: 1, max_in_flight: 1, ping_interval_ms: 60_000 }, {}],
    ['twenty headers', { headers: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`X-${n}`, 'v'])) }, {}],
    ['fifty texts', { metadata: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`k${n}`, 'v'])) }, {}],
  ])('may be %s', async (_, settings, shown) => {
    const answer = await posthorn.api.post(path, { url, events: ['a'], ...settings });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({ ...settings, ...shown });
  });
});

const text = (length: number): string => 'x'.repeat(length);
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`x${n}`, 'v']));
const bad: [field: string, value: unknown, rule: RegExp, example: RegExp, code?: string][] = [
  ['url', 'http://example.com/', /https/, /https:\/\/hooks\.example\.com/, 'invalid_url'],
  ['url', 'http://10.0.0.1/', /private|https/, /https:\/\/hooks\.example\.com/, 'invalid_url'],
  ['url', 7, /https URL/, /https:\/\/hooks\.example\.com/],
  ['url', null, /https URL/, /https:\/\/hooks\.example\.com/],
  ['events', null, /list/, /invoice\.paid/],
  ['events', [], /at least one/, /invoice\.paid/],
  ['events', Array(101).fill('a'), /at most 100/, /invoice/],
  ['events.0', ['a..b'], /dotted/, /invoice\.paid/],
  ['description', text(501), /500/, /text/],
  ['metadata', [], /object/, /"team": "billing"/],
  ['metadata', 'a', /object/, /"team": "billing"/],
  ['metadata', many(51), /at most 50/, /"team": "billing"/],
  ['metadata.a b', { 'a b': 'c' }, /A-Z/, /"team": "billing"/],
  ['metadata.__proto__', JSON.parse('{"__proto__":"x"}'), /names/, /"team": "billing"/],
  ['metadata.a', { a: 1 }, /texts/, /"team": "billing"/],
  ['metadata.a', { a: text(501) }, /500/, /"team": "billing"/],
  ['metadata.a', { a: 'a\0' }, /texts/, /"team": "billing"/],
  ['profile', 'svix', /one of default, cloudevents/, /default/],
  ['profile', 'constructor', /one of default, cloudevents/, /default/],
  ['envelope', 'xml', /one of default, cloudevents/, /null/],
  ['signature', 'none', /one of default, standard_webhooks/, /null/],
  ['verification', 'none', /challenge, handshake, ping/, /null/],
  ['payload', 'fat', /full, thin/, /null/],
  ['timeout_ms', 999, /1000 to 30000/, /such as 10000/],
  ['timeout_ms', 30_001, /1000 to 30000/, /such as 10000/],
  ['timeout_ms', '5000', /whole number of milliseconds/, /such as 10000/],
  ['retry_waits_ms', [], /1 – 20/, /such as \[60000/],
  ['retry_waits_ms', Array(21).fill(1_000), /1 – 20/, /such as \[60000/],
  ['retry_waits_ms.1', [100, 99], /100 to 86400000/, /such as \[60000/],
  ['retry_waits_ms.0', [86_400_001], /100 to 86400000/, /such as \[60000/],
  ['retry_waits_ms.0', [null], /whole numbers/, /such as \[60000/],
  ['headers', [], /object/, /"Authorization": "Bearer/],
  ['headers', 'X: y', /object/, /"Authorization": "Bearer/],
  ['headers', many(21), /at most 20/, /"Authorization": "Bearer/],
  ['headers.Host', { Host: 'x' }, /Posthorn/, /"Authorization": "Bearer/],
  ['headers.content-length', { 'content-length': '1' }, /Posthorn/, /"Authorization": "Bearer/],
  ['headers.Webhook-Id', { 'Webhook-Id': '1' }, /Posthorn/, /"Authorization": "Bearer/],
  ['headers.X-A', { 'X-A': 'a\r\nX-B: c' }, /line breaks/, /"Authorization": "Bearer/],
  ['headers.X A', { 'X A': 'a' }, /letters/, /"Authorization": "Bearer/],
  ['headers.x-a', { 'X-A': 'a', 'x-a': 'b' }, /once/, /"Authorization": "Bearer/],
  ['headers.X-A', { 'X-A': 'caf\u00e9' }, /ASCII/, /"Authorization": "Bearer/],
  ['headers.X-A', { 'X-A': 1 }, /string/, /"Authorization": "Bearer/],
  ['headers.Authorization', { Authorization: '***' }, /none of this name/, /"Authorization": "Bearer/],
  ['rate_limit_per_second', 0, /1 to 10000/, /such as 10/],
  ['rate_limit_per_second', 10_001, /1 to 10000/, /such as 10/],
  ['rate_limit_per_second', 0.5, /whole number/, /such as 10/],
  ['max_in_flight', 0, /1 to 1000/, /such as 8/],
  ['max_in_flight', 1_001, /1 to 1000/, /such as 8/],
  ['expires_at', '2020-01-01T00:00:00Z', /future/, /such as 20/],
  ['expires_at', new Date(Date.now() + 3_655 * 86_400_000).toISOString(), /10 years/, /such as 20/],
  ['expires_at', '2027-02-30T00:00:00Z', /RFC 3339/, /such as 20/],
  ['expires_at', '2027-01-31', /RFC 3339/, /such as 20/],
  ['expires_at', 1_800_000_000, /RFC 3339/, /such as 20/],
  ['owner_email', 'hooks', /e-mail/, /hooks@example\.com/],
  ['owner_email', 'Hooks <hooks@example.com>', /e-mail/, /hooks@example\.com/],
  ['owner_email', 'a@example.com, b@example.com', /one e-mail/, /hooks@example\.com/],
  ['owner_email', 'a@example.com\nBcc: b@example.com', /e-mail/, /hooks@example\.com/],
  ['owner_email', `${text(64)}@${text(60)}.${text(60)}.${text(60)}.example.com`, /254/, /hooks@example\.com/],
  ['ping_interval_ms', 59_999, /60000 to 86400000/, /such as 3600000/],
  ['ping_interval_ms', 86_400_001, /60000 to 86400000/, /such as 3600000/],
];

describe('a setting that is refused', () => {
  let before: string;
  let id: string;
  beforeAll(async () => {
    id = (await posthorn.api.createEndpoint(url, ['a'])).id;
    before = (await posthorn.api.get(`${path}/${id}`)).text;
  });

  it.each(bad)('names the field, the rule and an accepted example, in POST and PATCH: %s %j', async (...given) => {
    const [field, value, rule, example, code = 'invalid_field'] = given;
    const name = field.split('.')[0]!;
    const setting = { [name]: value };
    const count = async () => (await posthorn.sql('select count(*)::int as n from endpoints'))[0];
    const stored = await count();
    const answers = [
      await posthorn.api.post(path, { url, events: ['a'], ...setting }),
      await posthorn.api.call('PATCH', `${path}/${id}`, setting),
    ];
    for (const answer of answers) {
      expect(answer, answer.text).toMatchObject({ status: 422, body: { code, field } });
      expect(answer.body.detail).toMatch(rule);
      expect(answer.body.detail).toMatch(example);
      expect(answer.text.length).toBeLessThan(2_000);
    }
    expect(await count()).toEqual(stored);
    expect((await posthorn.api.get(`${path}/${id}`)).text).toBe(before);
  });

  it.each([
    ['whsec_c2hvcnQ=', /32 – 64 bytes/],
    [secret.replace('whsec_', ''), /begins with whsec_/],
    [`${secret} `, /whitespace/],
    [`WHSEC_${secret.slice(6)}`, /small letters/],
    ['', /empty/],
    [7, /whsec_/],
    [null, /whsec_/],
  ])('is a secret, whose text is never repeated: %s', async (given, rule) => {
    const { id: endpoint } = await posthorn.api.createEndpoint(url, ['a']);
    const answers = [
      await posthorn.api.post(path, { url, events: ['a'], secret: given }),
      await posthorn.api.post(`${path}/${endpoint}/secrets`, { secret: given }),
    ];
    for (const answer of answers) {
      expect(answer, answer.text).toMatchObject({ status: 422, body: { code: 'invalid_field', field: 'secret' } });
      expect(answer.body.detail).toMatch(rule);
      expect(answer.body.detail).toMatch(/whsec_[A-Za-z0-9+/]{43}=/);
      expect(answer.text).not.toContain(secret.replace('whsec_', ''));
    }
  });

  it.each(['constructor', '__proto__', 'prototype', 'toString', 'hasOwnProperty'])(
    'is a field by the name of %s, and so is a parameter',
    async (name) => {
      const unknown = { status: 422, body: { code: 'unknown_field', field: name } };
      const body = `{"url":"${url}","events":["a"],"${name}":{"url":"x"}}`;
      expect(await posthorn.api.post(path, body)).toMatchObject(unknown);
      expect(await posthorn.api.call('PATCH', `${path}/${id}`, `{"${name}":null}`)).toMatchObject(unknown);
      expect(await posthorn.api.post(`${path}/${id}/secrets`, `{"${name}":1}`)).toMatchObject(unknown);
      expect(await posthorn.api.post(`${path}/${id}/test`, `{"${name}":1}`)).toMatchObject(unknown);
      expect(await posthorn.api.get(`${path}?${name}=1`)).toMatchObject(unknown);
      expect(await posthorn.api.get(`${path}/${id}?${name}=1`)).toMatchObject(unknown);
    },
  );

  it.each(['id', 'status', 'effective', 'verification_state', 'allowed_rate_per_minute', 'secret', 'tenant_id'])(
    'is one that can’t be changed: %s',
    async (name) => {
      const answer = await posthorn.api.call('PATCH', `${path}/${id}`, { [name]: 'default' });
      expect(answer).toMatchObject({ status: 422, body: { code: 'unknown_field', field: name } });
    },
  );
});

/** As they are in the database. */
const storedHeaders = async (id: string): Promise<unknown> => {
  const [row] = await posthorn.sql<{ sealed_headers: string }>('select sealed_headers from endpoints where id = $1', [
    id,
  ]);
  return JSON.parse(posthorn.core.secrets.open(row!.sealed_headers, `${id}/headers`));
};

describe('headers of an endpoint', () => {
  const headers = { 'X-Team': 'billing', Authorization: 'Bearer header-value-2', 'X-Api-Key': 'header-value-3' };
  const shown = { 'X-Team': 'billing', Authorization: '***', 'X-Api-Key': '***' };
  it('are kept encrypted, and what may be a credential is never shown', async () => {
    const made = await posthorn.api.post(path, { url, events: ['a'], headers });
    const answers = [
      made,
      await posthorn.api.get(`${path}/${made.body.id}`),
      await posthorn.api.get(`${path}?limit=1`),
      await posthorn.api.call('PATCH', `${path}/${made.body.id}`, { description: 'x' }),
      await posthorn.api.call('PATCH', `${path}/${made.body.id}`, { headers: { ...headers, Host: 'x' } }),
    ];
    expect(made.body.headers).toEqual(shown);
    for (const answer of answers) expect(answer.text).not.toContain('header-value');
    expect(await dumpDatabase(posthorn.databaseUrl)).not.toContain('header-value');
    expect(await storedHeaders(made.body.id)).toEqual(headers);
  });

  it('keep their value where the mask is written back, and are replaced as a whole', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['a'], { headers });
    const changed = await posthorn.api.call('PATCH', `${path}/${id}`, {
      headers: { authorization: '***', 'X-Team': 'sales' },
    });
    expect(changed.body.headers).toEqual({ authorization: '***', 'X-Team': 'sales' });
    expect(await storedHeaders(id)).toEqual({ authorization: 'Bearer header-value-2', 'X-Team': 'sales' });
    const etag = changed.headers.get('etag');
    const same = await posthorn.api.call('PATCH', `${path}/${id}`, { headers: changed.body.headers });
    expect(same.headers.get('etag')).toBe(etag);
    for (const name of ['X-Api-Key', 'X-Team']) {
      const refused = await posthorn.api.call('PATCH', `${path}/${id}`, { headers: { [name]: '***' } });
      expect(refused).toMatchObject({ status: 422, body: { code: 'invalid_field', field: `headers.${name}` } });
    }
  });

  it('that no key opens break neither the endpoint nor the list', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['a'], { headers });
    await posthorn.sql(`update endpoints set sealed_headers = 'v1.gone.' || repeat('A', 60) where id = $1`, [id]);
    expect((await posthorn.api.get(`${path}/${id}`)).body.headers).toBeNull();
    expect((await posthorn.api.get(`${path}?limit=1`)).body.data[0]).toMatchObject({ id, headers: null });
    const kept = await posthorn.api.call('PATCH', `${path}/${id}`, { headers: { Authorization: '***' } });
    expect(kept).toMatchObject({ status: 422, body: { field: 'headers.Authorization' } });
    const replaced = await posthorn.api.call('PATCH', `${path}/${id}`, { headers: { Authorization: 'Bearer new' } });
    expect(replaced).toMatchObject({ status: 200, body: { headers: { Authorization: '***' } } });
  });

  it('that no key opens can be taken away', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['a'], { headers });
    await posthorn.sql(`update endpoints set sealed_headers = 'v1.gone.' || repeat('A', 60) where id = $1`, [id]);
    const answer = await posthorn.api.call('PATCH', `${path}/${id}`, { headers: {} });
    expect(answer.body.headers).toEqual({});
  });

  it.each([
    ['headers.X-A', '{"headers":{"X-A":"a","X-A":"b"}}'],
    ['metadata.team', '{"metadata":{"team":"a","te\\u0061m":"b"}}'],
    ['headers', '{"headers":{},"headers":{}}'],
  ])('and texts are given once: %s', async (field, body) => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    expect(await posthorn.api.call('PATCH', `${path}/${id}`, body)).toMatchObject({
      status: 422,
      body: { code: 'duplicate_field', field },
    });
  });
});

it('a secret of one’s own is taken as it is, and shown once', async () => {
  const made = await posthorn.api.post(path, { url, events: ['a'], secret });
  expect(made).toMatchObject({ status: 201, body: { secret } });
  expect((await posthorn.api.get(`${path}/${made.body.id}`)).text).not.toContain('whsec');
  const [row] = await posthorn.sql<{ id: string; sealed: string }>(
    'select id, sealed from endpoint_secrets where endpoint_id = $1',
    [made.body.id],
  );
  expect(row!.id).toMatch(/^sec_[0-9A-Z]{26}$/);
  expect(posthorn.core.secrets.open(row!.sealed, made.body.id)).toBe(secret);
  expect(await dumpDatabase(posthorn.databaseUrl)).not.toContain(secret);
});

it('a merge patch is taken as a change, and as nothing else', async () => {
  const { id } = await posthorn.api.createEndpoint(url, ['a']);
  const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/merge-patch+json; charset=utf-8' };
  const change = await rawRequest(posthorn.port, {
    method: 'PATCH',
    path: `${path}/${id}`,
    headers,
    body: '{"description":"merged"}',
  });
  expect(change).toMatchObject({ status: 200, body: { description: 'merged' } });
  for (const other of [path, '/v1/events', `${path}/${id}/secrets`, `${path}/${id}/test`]) {
    const refused = await rawRequest(posthorn.port, { method: 'POST', path: other, headers, body: '{}' });
    expect(refused).toMatchObject({ status: 415, body: { code: 'unsupported_media_type' } });
  }
});
