import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import type { ApiClient } from '../../support/posthorn.js';

let posthorn: RunningApi;
let a: ApiClient;
let b: ApiClient;
let ofB: { endpoint: string; delivery: string; event: string; secret: string };

const url = 'http://127.0.0.1:9/hook';
const subscriptions = '/v1/webhooks/subscriptions';
const deliveries = '/v1/webhook-deliveries';

beforeAll(async () => {
  posthorn = await startApi();
  [a, b] = [await posthorn.tenant('a'), await posthorn.tenant('b')];
  await a.createEndpoint(url, ['*']);
  const { id: endpoint } = await b.createEndpoint(url, ['*']);
  const event = await b.publish('of.b');
  await b.post(`${subscriptions}/${endpoint}/secrets`);
  // The old one, which might be ended.
  const secret = (await b.get(`${subscriptions}/${endpoint}/secrets`)).body.data[1].id;
  ofB = { endpoint, event: event.id, delivery: event.deliveries[0]!.id, secret };
});
afterAll(() => posthorn.stop());

describe('a tenant’s key', () => {
  const routes: [method: string, path: (ids: typeof ofB) => string, body?: unknown][] = [
    ['GET', ({ endpoint }) => `${subscriptions}/${endpoint}`],
    ['PATCH', ({ endpoint }) => `${subscriptions}/${endpoint}`, { description: 'taken' }],
    ['PATCH', ({ endpoint }) => `${subscriptions}/${endpoint}`, { url: 'http://127.0.0.1:9/taken' }],
    ['PATCH', ({ endpoint }) => `${subscriptions}/${endpoint}`, {}],
    ['GET', ({ endpoint }) => `${subscriptions}/${endpoint}/secrets`],
    ['POST', ({ endpoint }) => `${subscriptions}/${endpoint}/secrets`],
    ['DELETE', ({ endpoint, secret }) => `${subscriptions}/${endpoint}/secrets/${secret}`],
    ['POST', ({ endpoint }) => `${subscriptions}/${endpoint}/verify`],
    ['POST', ({ endpoint }) => `${subscriptions}/${endpoint}/ping`],
    ['POST', ({ endpoint }) => `${subscriptions}/${endpoint}/test`],
    ['DELETE', ({ endpoint }) => `${subscriptions}/${endpoint}`],
    ['GET', ({ delivery }) => `${deliveries}/${delivery}`],
    ['GET', ({ delivery }) => `${deliveries}/${delivery}?wait=10s`],
    ['GET', ({ delivery }) => `${deliveries}/${delivery}/attempts`],
    ['POST', ({ delivery }) => `${deliveries}/${delivery}/redeliver`],
    ['POST', ({ delivery }) => `${deliveries}/${delivery}/cancel`],
  ];

  it.each(routes)('finds nothing of another tenant: %s', async (method, path, body) => {
    const before = (await b.get(`${subscriptions}/${ofB.endpoint}`)).body;
    const foreign = await a.call(method, path(ofB), body);
    expect(foreign).toMatchObject({ status: 404, body: { code: 'not_found' } });
    // As if there were no such thing at all.
    const nobodys = {
      endpoint: 'we_01KC0000000000000000000000',
      delivery: 'whd_01KC0000000000000000000000',
      event: '',
      secret: 'sec_01KC0000000000000000000000',
    };
    const nothing = await a.call(method, path(nobodys), body);
    expect(foreign.body.detail.replace(/'.*'/, '')).toBe(nothing.body.detail.replace(/'.*'/, ''));
    expect((await b.get(`${deliveries}/${ofB.delivery}`)).body).toMatchObject({ status: 'pending', round: 1 });
    expect((await b.get(`${subscriptions}/${ofB.endpoint}`)).body).toEqual(before);
    expect((await b.get(`${subscriptions}/${ofB.endpoint}/secrets`)).body.data).toHaveLength(2);
  });

  it('ends no secret of another tenant by way of its own endpoint', async () => {
    const { id } = (await a.get(subscriptions)).body.data[0];
    expect((await a.delete(`${subscriptions}/${id}/secrets/${ofB.secret}`)).status).toBe(404);
    expect((await b.get(`${subscriptions}/${ofB.endpoint}/secrets`)).body.data).toHaveLength(2);
  });

  it('lists only its own', async () => {
    const { deliveries: made } = await a.publish('of.a');
    const endpoints = (await a.get(`${subscriptions}?limit=250`)).body.data;
    expect(endpoints.map((row: { tenant_id: string }) => row.tenant_id)).toEqual(['a']);
    const listed = (await a.get(`${deliveries}?limit=250`)).body.data;
    expect(listed.map((row: { id: string }) => row.id)).toEqual(made.map(({ id }) => id));
    for (const filter of [`endpoint_id=${ofB.endpoint}`, `event_id=${ofB.event}`, 'type=of.b'])
      expect((await a.get(`${deliveries}?${filter}`)).body.data).toEqual([]);
  });

  it('reaches only its own endpoints', async () => {
    const event = await a.publish('of.a');
    expect(event.deliveries.map((delivery) => delivery.endpoint_id)).not.toContain(ofB.endpoint);
    expect(event.deliveries).toHaveLength(1);
    const dry = await a.post('/v1/events?dry_run=true', { type: 'of.a', data: {} });
    expect(dry.body.endpoints).toHaveLength(1);
  });

  it.each([
    ['GET', `${subscriptions}?tenant_id=b`, undefined],
    ['GET', `${deliveries}?tenant_id=b`, undefined],
    ['GET', `${deliveries}/whd_1?tenant_id=b`, undefined],
    ['GET', `${deliveries}/whd_1/attempts?tenant_id=b`, undefined],
    ['POST', `${deliveries}/whd_1/redeliver?tenant_id=b`, undefined],
    ['POST', `${deliveries}/whd_1/cancel?tenant_id=b`, undefined],
    ['DELETE', `${subscriptions}/we_1?tenant_id=b`, undefined],
    ['PATCH', `${subscriptions}/we_1?tenant_id=b`, { description: 'taken' }],
    ['GET', `${subscriptions}/we_1/secrets?tenant_id=b`, undefined],
    ['POST', `${subscriptions}/we_1/secrets?tenant_id=b`, undefined],
    ['DELETE', `${subscriptions}/we_1/secrets/sec_1?tenant_id=b`, undefined],
    ['POST', `${subscriptions}/we_1/verify?tenant_id=b`, undefined],
    ['POST', `${subscriptions}/we_1/ping?tenant_id=b`, undefined],
    ['POST', `${subscriptions}/we_1/test?tenant_id=b`, undefined],
    ['POST', subscriptions, { url, events: ['*'], tenant_id: 'b' }],
    ['POST', '/v1/events', { type: 'of.b', data: {}, tenant_id: 'b' }],
    ['POST', '/v1/events?dry_run=true', { type: 'of.b', data: {}, tenant_id: 'b' }],
  ])('may not name another tenant: %s %s', async (method, path, body) => {
    expect(await a.call(method, path, body)).toMatchObject({
      status: 403,
      body: { code: 'tenant_forbidden', field: 'tenant_id' },
    });
  });

  it('may name its own', async () => {
    expect((await a.get(`${subscriptions}?tenant_id=a`)).body.data).toHaveLength(1);
    expect((await a.post('/v1/events', { type: 'of.a', data: {}, tenant_id: 'a' })).status).toBe(202);
  });

  it('ends when it is revoked, at the latest five seconds later', async () => {
    const revoked = await posthorn.tenant('revoked');
    await posthorn.sql(`update api_keys set revoked_at = now() where tenant_id = 'revoked'`);
    expect((await revoked.get(subscriptions)).status).toBe(401);
  });
});

describe('a service key', () => {
  it('acts for the tenant that it names, by default for default', async () => {
    const { api } = posthorn;
    expect((await api.get(subscriptions)).body.data).toEqual([]);
    expect((await api.get(`${subscriptions}?tenant_id=b`)).body.data).toHaveLength(1);
    expect((await api.get(`${subscriptions}/${ofB.endpoint}`)).status).toBe(404);
    expect((await api.get(`${subscriptions}/${ofB.endpoint}?tenant_id=b`)).status).toBe(200);
    expect((await api.get(`${deliveries}/${ofB.delivery}?tenant_id=b`)).status).toBe(200);
    expect((await api.get(`${deliveries}/${ofB.delivery}/attempts?tenant_id=b`)).status).toBe(200);
    const event = await api.post('/v1/events', { type: 'of.b', data: {}, tenant_id: 'b' });
    expect(event.body).toMatchObject({ tenant_id: 'b', deliveries: [{ endpoint_id: ofB.endpoint }] });
    expect((await api.post(`${deliveries}/${event.body.deliveries[0].id}/cancel?tenant_id=b`)).status).toBe(202);
  });
});
