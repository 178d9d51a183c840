import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;
beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

const url = 'http://127.0.0.1:9/hook';
const subscriptions = '/v1/webhooks/subscriptions';

const targets = (event: { deliveries: { endpoint_id: string }[] }) => event.deliveries.map((d) => d.endpoint_id).sort();

describe('an endpoint with a content filter', () => {
  it('gets only what its filter wants, alone and in a batch', async () => {
    const { api } = posthorn;
    const filtered = await api.createEndpoint(url, ['order.*'], { filter: { amount: { $gte: 100 } } });
    const all = await api.createEndpoint(url, ['order.*']);
    expect(targets(await api.publish('order.placed', { amount: 99 }))).toEqual([all.id]);
    expect(targets(await api.publish('order.placed', { amount: 100 }))).toEqual([filtered.id, all.id].sort());
    const events = [1, 500, 2, '500'].map((amount) => ({ type: 'order.placed', data: { amount } }));
    const batch = await api.post('/v1/events/batch', { events });
    expect(batch.body.data.map((item: { event: never }) => targets(item.event))).toEqual([
      [all.id],
      [filtered.id, all.id].sort(),
      [all.id],
      [all.id],
    ]);
    const rows = await posthorn.sql<{ count: number }>('select count(*)::int from deliveries where endpoint_id = $1', [
      filtered.id,
    ]);
    expect(rows[0]?.count).toBe(2);
  });

  it('compares numbers of the data exactly', async () => {
    const { api } = posthorn;
    const { id } = await api.createEndpoint(url, ['big.counted'], { filter: { n: { $gt: 9007199254740991 } } });
    const publish = async (n: string) =>
      (await api.post('/v1/events', `{"type":"big.counted","data":{"n":${n}}}`)).body.deliveries.length as number;
    expect(await publish('9007199254740991')).toBe(0);
    expect(await publish('9007199254740992')).toBe(1);
    expect(await publish('9007199254740991.0000000001')).toBe(1);
    await api.delete(`${subscriptions}/${id}`);
  });

  it('shows it, and replaces or removes it as a whole', async () => {
    const { api } = posthorn;
    const { id } = await api.createEndpoint(url, ['show.n'], { filter: { a: null, b: { c: [1, 2] } } });
    const filter = async () => (await api.get(`${subscriptions}/${id}`)).body.filter as unknown;
    expect(await filter()).toEqual({ a: null, b: { c: [1, 2] } });
    await api.call('PATCH', `${subscriptions}/${id}`, { filter: { d: 1 } });
    expect(await filter()).toEqual({ d: 1 });
    await api.call('PATCH', `${subscriptions}/${id}`, { description: 'x' });
    expect(await filter()).toEqual({ d: 1 });
    await api.call('PATCH', `${subscriptions}/${id}`, { filter: null });
    expect(await filter()).toBeNull();
  });

  it.each([
    ['an unknown operator', { amount: { $between: [1, 2] } }, 'filter.amount.$between'],
    ['a number that was rounded', '{"id": 12345678901234567891}', 'filter.id'],
    ['a list', [1], 'filter'],
    ['an $in without a list', { a: { $in: 1 } }, 'filter.a.$in'],
  ])('is refused with its place: %s', async (_, filter, field) => {
    const given = typeof filter === 'string' ? filter : JSON.stringify(filter);
    const body = `{"url":"${url}","events":["a.b"],"filter":${given}}`;
    const created = await posthorn.api.post(subscriptions, body);
    expect([created.status, created.body.code, created.body.field]).toEqual([422, 'invalid_field', field]);
    const { id } = await posthorn.api.createEndpoint(url, ['patch.b']);
    const patched = await posthorn.api.call('PATCH', `${subscriptions}/${id}`, `{"filter":${given}}`);
    expect([patched.status, patched.body.field]).toEqual([422, field]);
  });

  it('is told by a dry run which rule decided', async () => {
    const api = await posthorn.tenant('dry');
    const wants = await api.createEndpoint(url, ['dry.run', 'dry.*'], { filter: { a: { $in: [1, 2] } } });
    const plain = await api.createEndpoint(url, ['*']);
    const stopped = await api.createEndpoint(url, ['dry.*'], { filter: { a: { b: { $exist: true } } } });
    const elsewhere = await api.createEndpoint(url, ['other.*']);
    const off = await api.createEndpoint(url, ['dry.*']);
    await posthorn.sql(`update endpoints set status = 'disabled' where id = $1`, [off.id]);
    const { body } = await api.post('/v1/events?dry_run=true', { type: 'dry.run', data: { a: 1 } });
    expect(body.endpoints).toMatchObject([
      { endpoint_id: wants.id, decided_by: 'filter', rule: null },
      { endpoint_id: plain.id, decided_by: 'events', rule: '*' },
    ]);
    expect(body.others).toMatchObject([
      { endpoint_id: off.id, decided_by: 'status', rule: 'disabled' },
      { endpoint_id: elsewhere.id, decided_by: 'events', rule: null },
      { endpoint_id: stopped.id, decided_by: 'filter', rule: 'filter.a.b.$exist' },
    ]);
  });

  it('recovers what it missed by today’s filter', async () => {
    const api = await posthorn.tenant('recover');
    const amounts = Array.from({ length: 450 }, (_, i) => i);
    const since = new Date(Date.now() - 1_000).toISOString();
    await api.post('/v1/events/batch', { events: amounts.map((amount) => ({ type: 'missed.one', data: { amount } })) });
    const { id } = await api.createEndpoint(url, ['missed.*'], { filter: { amount: { $gte: 445 } } });
    const dry = await api.post(`${subscriptions}/${id}/recover`, { since, dry_run: true });
    expect(dry.body.total).toBe(5);
    expect(await api.post(`${subscriptions}/${id}/recover`, { since })).toMatchObject({
      status: 202,
      body: { progress: { total: 5 } },
    });
    const items = await posthorn.sql<{ data: string }>(
      `select v.data from replay_items i join events v on v.id = i.event_id where i.endpoint_id = $1`,
      [id],
    );
    expect(items.every(({ data }) => (JSON.parse(data) as { amount: number }).amount >= 445)).toBe(true);
  });
});
