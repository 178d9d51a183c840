import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dumpDatabase, type RunningApi, startApi } from '../../support/api.js';
import { testKey } from '../../support/posthorn.js';

let posthorn: RunningApi;

beforeAll(async () => {
  // As in production: https and public addresses only.
  posthorn = await startApi({ extra: { POSTHORN_DELIVERY_ALLOW_HTTP: 'off', POSTHORN_DELIVERY_ALLOWED_CIDRS: '' } });
});
afterAll(() => posthorn.stop());

const path = '/v1/webhooks/subscriptions';
const url = 'https://hooks.example.com/posthorn';

describe('an endpoint', () => {
  it('is active at once, with the defaults of its profile', async () => {
    const answer = await posthorn.api.post(path, { url, events: ['invoice.*', 'invoice.*', '*'] });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^we_[0-9A-Z]{26}$/),
      api_version: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      filter: null,
      tenant_id: 'default',
      url,
      events: ['invoice.*', '*'],
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
      credentials: null,
      client_certificate: null,
      public_key: null,
      rate_limit_per_second: null,
      allowed_rate_per_minute: null,
      max_in_flight: null,
      expires_at: null,
      owner_email: null,
      ping_interval_ms: null,
      effective: {
        envelope: 'default',
        signature: 'default',
        timeout_ms: 10_000,
        retry_waits_ms: [60_000, 300_000, 1_800_000, 7_200_000, 43_200_000],
        max_in_flight: 64,
        rate_limit_per_second: null,
      },
      verification_state: {
        status: 'not_required',
        tries: 0,
        next_try_at: null,
        last_try_at: null,
        last_way: null,
        last_status_code: null,
        last_error: null,
        last_answer: null,
        verified_at: expect.any(String),
        verified_way: null,
      },
      status: 'active',
      status_reason: null,
      status_changed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      created_at: expect.any(String),
      updated_at: expect.any(String),
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    });
  });

  it('keeps the settings it was given', async () => {
    const settings = {
      description: 'Büro\n😀',
      timeout_ms: 30_000,
      retry_waits_ms: [100, 86_400_000],
      profile: 'default',
    };
    const made = await posthorn.api.post(path, { url, events: ['a'], ...settings });
    const { secret: _, ...endpoint } = made.body;
    expect(endpoint).toMatchObject(settings);
    expect((await posthorn.api.get(`${path}/${endpoint.id}`)).body).toEqual(endpoint);
  });

  it('shows its secret in the answer to its creation only', async () => {
    const { id, secret } = await posthorn.api.createEndpoint(url, ['a']);
    const answers = [await posthorn.api.get(`${path}/${id}`), await posthorn.api.get(`${path}?limit=250`)];
    for (const { text } of answers) {
      expect(text).toContain(id);
      expect(text).not.toContain('secret');
      expect(text).not.toContain(secret);
    }
  });

  it('has a secret of its own, sealed in the database, where API keys are hashes only', async () => {
    const made = [await posthorn.api.createEndpoint(url, ['a']), await posthorn.api.createEndpoint(url, ['a'])];
    expect(new Set(made.map(({ secret }) => secret)).size).toBe(2);
    const dump = await dumpDatabase(posthorn.databaseUrl);
    for (const { id, secret } of made) {
      expect(dump).toContain(id);
      const bare = secret.replace('whsec_', '');
      const encodings = [bare, Buffer.from(bare, 'base64').toString('hex'), Buffer.from(secret).toString('hex')];
      for (const text of [secret, ...encodings]) expect(dump).not.toContain(text);
      const [row] = await posthorn.sql<{ sealed: string }>(
        'select sealed from endpoint_secrets where endpoint_id = $1',
        [id],
      );
      expect(posthorn.core.secrets.open(row!.sealed, id)).toBe(secret);
    }
    for (const text of [testKey, Buffer.from(testKey).toString('hex'), Buffer.from(testKey).toString('base64')])
      expect(dump).not.toContain(text);
  });

  it('is gone when it is deleted, and what waited for it is cancelled', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['deleted.one']);
    const { deliveries } = await posthorn.api.publish('deleted.one');
    expect(await posthorn.api.delete(`${path}/${id}`)).toMatchObject({ status: 204, text: '' });
    expect((await posthorn.api.get(`${path}/${id}`)).status).toBe(404);
    expect((await posthorn.api.delete(`${path}/${id}`)).status).toBe(404);
    expect((await posthorn.api.get(`${path}?limit=250`)).text).not.toContain(id);
    expect((await posthorn.api.publish('deleted.one')).deliveries.map((d) => d.endpoint_id)).not.toContain(id);
    const mine = deliveries.find((delivery) => delivery.endpoint_id === id)!;
    expect(await posthorn.api.delivery(mine.id)).toMatchObject({
      status: 'cancelled',
      reason: 'endpoint_deleted',
      next_attempt_at: null,
    });
  });
});

describe('a URL', () => {
  it.each([
    ['ftp://hooks.example.com/', /scheme/],
    ['http://hooks.example.com/', /https/],
    ['hooks.example.com', /absolute/],
    ['https://', /host/],
    ['https://@hooks.example.com/', /user name and password/],
    ['https://hooks.example.com/#part', /fragment/],
    ['https://hooks.example.com/a b', /spaces/],
    ['https://hooks.example.com\\path', /backslash/],
    ['https://hooks.example.com:0/', /port 0/],
    ['https://127.0.0.1/', /loopback/],
    ['https://2130706433/', /loopback/],
    ['https://0x7f.1/', /loopback/],
    ['https://[::1]/', /loopback/],
    ['https://[::ffff:10.0.0.1]/', /private/],
    ['https://169.254.169.254/latest/meta-data', /link-local/],
    ['https://192.168.1.1/', /private/],
    [`https://hooks.example.com/${'a'.repeat(2_100)}`, /2048/],
    ['', /absolute/],
  ])('is refused with the rule and an accepted example: %s', async (bad, rule) => {
    const answer = await posthorn.api.post(path, { url: bad, events: ['a'] });
    expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_url', field: 'url' } });
    expect(answer.body.detail).toMatch(rule);
    expect(answer.body.detail).toContain('https://hooks.example.com/posthorn');
  });

  it.each([
    'https://hooks.example.com/a%20b?x=%2F&y=%C3%A9',
    'https://hooks.example.com:8443/deep/er/path',
    'https://b\u00fccher.example/hook',
    'https://93.184.215.14/hook',
    `https://hooks.example.com/${'a'.repeat(2_000)}`,
  ])('is accepted: %s', async (good) => {
    const answer = await posthorn.api.post(path, { url: good, events: ['a'] });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.url).toBe(new URL(good).href);
  });
});
