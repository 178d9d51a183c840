import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import { makeLetters } from '../../support/letters.js';
import { resourceOf, type Route, routes } from '../../support/routes.js';
import type { ApiClient } from '../../support/posthorn.js';

let posthorn: RunningApi;
let a: ApiClient;
let b: ApiClient;
/** By the resource in the path: what `{id}` stands for. */
let ofB: Record<string, string>;
const nobodys: Record<string, string> = {
  events: 'evt_01KC0000000000000000000000',
  'webhooks/subscriptions': 'we_01KC0000000000000000000000',
  'webhook-deliveries': 'whd_01KC0000000000000000000000',
  'dead-letters': 'whd_01KC0000000000000000000000.1',
  replays: 'rpl_01KC0000000000000000000000',
  secret: 'sec_01KC0000000000000000000000',
  'event-types': 'of.nobody',
};

const url = 'http://127.0.0.1:9/hook';
const subscriptions = '/v1/webhooks/subscriptions';
const deliveries = '/v1/webhook-deliveries';

/** Bodies of the calls that need one, or that are worth more than one try. */
const bodies: Record<string, readonly unknown[]> = {
  'PATCH /v1/webhooks/subscriptions/{id}': [{ description: 'taken' }, { url: 'http://127.0.0.1:9/taken' }, {}],
  'POST /v1/webhooks/subscriptions/{id}/renew': [{ expires_at: null }],
  'POST /v1/webhooks/subscriptions/{id}/recover': [{ since: '2026-01-01T00:00:00Z' }],
  'POST /v1/webhooks/subscriptions': [{ url, events: ['*'] }],
  'POST /v1/events': [{ type: 'of.b', data: {} }],
  'POST /v1/replays': [{ filter: { type: 'of.b' } }],
  'POST /v1/dead-letters/replay': [{ filter: { type: 'of.b' } }],
  'POST /v1/webhooks/subscriptions/{id}/api-version/preview': [{ api_version: 'newest' }],
  'POST /v1/event-types/import': [{ event_types: [] }],
  'PUT /v1/event-types/{name}': [{}],
};

interface Call extends Route {
  readonly body: unknown;
}
const callsOf = (route: Route): Call[] =>
  (bodies[route.name] ?? [undefined]).map((body) => Object.assign({ body }, route));
const isOfOne = ({ path }: Route): boolean => path.includes('{');
/** Each tenant has types of any name. */
const makesItsOwn = ({ name }: Route): boolean => name === 'PUT /v1/event-types/{name}';
const pathOf = ({ path }: Route, ids: Record<string, string>): string =>
  path.replace(/\{(?:id|name)\}/, ids[resourceOf(path)] ?? 'unknown').replace('{secret_id}', ids['secret']!);

beforeAll(async () => {
  posthorn = await startApi();
  [a, b] = [await posthorn.tenant('a'), await posthorn.tenant('b')];
  await a.createEndpoint(url, ['of.a']);
  await b.call('PUT', '/v1/event-types/of.b', { description: 'what b says of it' });
  const { id: endpoint } = await b.createEndpoint(url, ['*']);
  const event = await b.publish('of.b');
  await b.post(`${subscriptions}/${endpoint}/secrets`);
  // The old one, which might be ended.
  const secret = (await b.get(`${subscriptions}/${endpoint}/secrets`)).body.data[1].id;
  const { core } = posthorn;
  await makeLetters({ api: b, core }, endpoint, 'of.b', 1);
  const letter = (await b.get('/v1/dead-letters')).body.data[0].id;
  const replay = (await b.post('/v1/dead-letters/replay', { filter: { endpoint_id: endpoint } })).body.id;
  const notice = { endpointId: endpoint, type: 'endpoint.failing', episode: 'now', data: {} } as const;
  await core.notices.create(core.db.manager, notice);
  ofB = {
    events: event.id,
    'webhooks/subscriptions': endpoint,
    'webhook-deliveries': event.deliveries[0]!.id,
    'dead-letters': letter,
    replays: replay,
    secret,
    'event-types': 'of.b',
  };
});
afterAll(() => posthorn.stop());

/** All that a tenant could change of another one’s. */
const stateOfB = async () =>
  Promise.all(
    [
      ...Object.keys(nobodys)
        .filter((resource) => resource !== 'secret')
        .map((resource) => `/v1/${resource}/${ofB[resource]}`),
      `${subscriptions}/${ofB['webhooks/subscriptions']}/secrets`,
    ].map(async (path) => {
      const { status, body } = await b.get(path);
      expect(status, path).toBe(200);
      // That of a replay is reckoned from now.
      return Object.assign(body, { estimated_end_at: null });
    }),
  );

describe('a tenant’s key', () => {
  it.each(routes.filter((route) => isOfOne(route) && !makesItsOwn(route)).flatMap(callsOf))(
    'finds nothing of another tenant: $name $body',
    async (call) => {
      const before = await stateOfB();
      const foreign = await a.call(call.method, pathOf(call, ofB), call.body);
      expect(foreign).toMatchObject({ status: 404, body: { code: 'not_found' } });
      // As if there were no such thing at all.
      const nothing = await a.call(call.method, pathOf(call, nobodys), call.body);
      expect(foreign.body.detail.replace(/'.*'/, '')).toBe(nothing.body.detail.replace(/'.*'/, ''));
      expect(await stateOfB()).toEqual(before);
    },
  );

  it('registers a type beside another tenant’s of the same name', async () => {
    const before = await stateOfB();
    expect((await a.call('PUT', '/v1/event-types/of.b', { description: 'what a says of it' })).status).toBe(201);
    expect(await stateOfB()).toEqual(before);
    expect((await a.delete('/v1/event-types/of.b')).status).toBe(204);
    expect(await stateOfB()).toEqual(before);
  });

  it('finds no delivery of another tenant by waiting for it', async () => {
    expect((await a.get(`${deliveries}/${ofB['webhook-deliveries']}?wait=10s`)).status).toBe(404);
  });

  it('replays nothing of another tenant, by whatever it names', async () => {
    const before = await stateOfB();
    const deliveryIds = { delivery_ids: [ofB['webhook-deliveries']] };
    expect((await a.post('/v1/replays', deliveryIds)).status).toBe(404);
    expect((await a.post('/v1/dead-letters/replay', { letter_ids: [ofB['dead-letters']] })).status).toBe(404);
    for (const path of ['/v1/replays', '/v1/dead-letters/replay']) {
      const filter = { endpoint_id: ofB['webhooks/subscriptions'] };
      expect((await a.post(path, { filter, dry_run: true })).body).toMatchObject({ total: 0 });
    }
    expect(await stateOfB()).toEqual(before);
  });

  it.each(routes.filter((route) => route.method === 'GET' && !isOfOne(route)))(
    'is shown nothing of another tenant: $name',
    async ({ path, parameters }) => {
      const filters = ['endpoint_id', 'event_id', 'after', 'type']
        .filter((name) => parameters.includes(name))
        .map((name) =>
          name === 'endpoint_id'
            ? [name, ofB['webhooks/subscriptions']]
            : name === 'type'
              ? [name, 'of.b']
              : [name, ofB['events']],
        )
        .map((filter) => `?${filter.join('=')}`);
      for (const query of ['', ...filters]) {
        const { status, text } = await a.get(path + query);
        expect([200, 404, 422]).toContain(status);
        for (const id of Object.values(ofB)) if (!query.includes(id)) expect(text).not.toContain(id);
      }
      const shown = await b.get(path);
      expect(shown.status).toBe(200);
      // The tenant itself is shown something: the check would see it.
      if (path === '/v1/stats') expect(shown.body).not.toEqual((await a.get(path)).body);
      else expect(Object.values(ofB).some((id) => shown.text.includes(id))).toBe(true);
    },
  );

  it('ends no secret of another tenant by way of its own endpoint', async () => {
    const { id } = (await a.get(subscriptions)).body.data[0];
    expect((await a.delete(`${subscriptions}/${id}/secrets/${ofB['secret']}`)).status).toBe(404);
    expect((await b.get(`${subscriptions}/${ofB['webhooks/subscriptions']}/secrets`)).body.data).toHaveLength(2);
  });

  it('lists only its own', async () => {
    const { deliveries: made } = await a.publish('of.a');
    const endpoints = (await a.get(`${subscriptions}?limit=250`)).body.data;
    expect(endpoints.map((row: { tenant_id: string }) => row.tenant_id)).toEqual(['a']);
    const listed = (await a.get(`${deliveries}?limit=250`)).body.data;
    expect(listed.map((row: { id: string }) => row.id)).toEqual(made.map(({ id }) => id));
    for (const filter of [`endpoint_id=${ofB['webhooks/subscriptions']}`, `event_id=${ofB['events']}`, 'type=of.b'])
      expect((await a.get(`${deliveries}?${filter}`)).body.data).toEqual([]);
  });

  it('reaches only its own endpoints', async () => {
    const event = await a.publish('of.a');
    expect(event.deliveries.map((delivery) => delivery.endpoint_id)).not.toContain(ofB['webhooks/subscriptions']);
    expect(event.deliveries).toHaveLength(1);
    const dry = await a.post('/v1/events?dry_run=true', { type: 'of.a', data: {} });
    expect(dry.body.endpoints).toHaveLength(1);
  });

  // Each event of a batch is judged by itself: batch.test.ts.
  it.each(routes.filter(({ path }) => path !== '/v1/events/batch').flatMap(callsOf))(
    'may not name another tenant: $name',
    async (call) => {
      const inQuery = call.parameters.includes('tenant_id');
      const path = pathOf(call, nobodys) + (inQuery ? '?tenant_id=b' : '');
      const body = inQuery ? call.body : { ...(call.body as object), tenant_id: 'b' };
      expect(await a.call(call.method, path, body)).toMatchObject({
        status: 403,
        body: { code: 'tenant_forbidden', field: 'tenant_id' },
      });
    },
  );

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
    expect((await api.get(`${subscriptions}/${ofB['webhooks/subscriptions']}`)).status).toBe(404);
    expect((await api.get(`${subscriptions}/${ofB['webhooks/subscriptions']}?tenant_id=b`)).status).toBe(200);
    expect((await api.get(`${deliveries}/${ofB['webhook-deliveries']}?tenant_id=b`)).status).toBe(200);
    expect((await api.get(`${deliveries}/${ofB['webhook-deliveries']}/attempts?tenant_id=b`)).status).toBe(200);
    const event = await api.post('/v1/events', { type: 'of.b', data: {}, tenant_id: 'b' });
    expect(event.body).toMatchObject({ tenant_id: 'b', deliveries: [{ endpoint_id: ofB['webhooks/subscriptions'] }] });
    expect((await api.post(`${deliveries}/${event.body.deliveries[0].id}/cancel?tenant_id=b`)).status).toBe(202);
  });
});
