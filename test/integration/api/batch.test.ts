import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi({ extra: { POSTHORN_HTTP_BODY_LIMIT_BYTES: '65536' } });
  await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['*']);
});
afterAll(() => posthorn.stop());

const batch = (events: readonly unknown[], api = posthorn.api) => api.post('/v1/events/batch', { events });
const rowsOf = (type: string) =>
  posthorn.sql<{ id: string; data: string; xid: string }>(
    'select id, data, xid::text from events where type = $1 order by seq',
    [type],
  );

it('takes a thousand events, in order, by one transaction', async () => {
  const events = Array.from({ length: 1_000 }, (_, n) => ({
    type: 'batch.thousand',
    data: { n },
    id: `thousand-${n}`,
  }));
  const answer = await batch(events);
  expect(answer.status).toBe(202);
  expect(answer.body).toMatchObject({ accepted: 1_000, rejected: 0 });
  expect(answer.body.data.map((item: { index: number; event: { id: string } }) => [item.index, item.event.id])).toEqual(
    events.map(({ id }, index) => [index, id]),
  );
  const rows = await rowsOf('batch.thousand');
  expect(rows).toHaveLength(1_000);
  expect(new Set(rows.map(({ xid }) => xid)).size).toBe(1);
  const [{ n }] = (await posthorn.sql<{ n: number }>(
    `select count(distinct event_id)::int as n from deliveries where type = 'batch.thousand'`,
  )) as [{ n: number }];
  expect(n).toBe(1_000);
});

it('takes one event more not at all', async () => {
  const answer = await batch(Array.from({ length: 1_001 }, () => ({ type: 'batch.over', data: 1 })));
  expect(answer).toMatchObject({ status: 413, body: { code: 'too_many_events', field: 'events' } });
  expect(await rowsOf('batch.over')).toEqual([]);
});

it('answers each event on its own, and stores the valid ones', async () => {
  const big = 'x'.repeat(70_000);
  const answer = await posthorn.api.post(
    '/v1/events/batch',
    `{"events":[{"type":"batch.mixed","data":{"a": 1.0}},{"type":"bad type","data":1},7,{"type":"batch.mixed"},
      {"type":"batch.mixed","data":"${big}"},{"type":"batch.mixed","data":2,"x":1},{"type":"batch.mixed","data":3}]}`,
  );
  expect(answer.status).toBe(202);
  expect(answer.body).toMatchObject({ accepted: 2, rejected: 5 });
  expect(
    answer.body.data.map((item: { status: number; error?: { code: string } }) => [item.status, item.error?.code]),
  ).toEqual([
    [202, undefined],
    [422, 'invalid_field'],
    [422, 'invalid_field'],
    [422, 'missing_field'],
    [413, 'too_large'],
    [422, 'unknown_field'],
    [202, undefined],
  ]);
  expect(answer.body.data[3].error).toMatchObject({
    type: 'urn:posthorn:problem:missing_field',
    status: 422,
    field: 'data',
  });
  expect((await rowsOf('batch.mixed')).map(({ data }) => data)).toEqual(['{"a": 1.0}', '3']);
});

it('may be empty, or hold nothing valid', async () => {
  expect((await batch([])).body).toEqual({ accepted: 0, rejected: 0, data: [] });
  expect((await batch([1, null])).body).toMatchObject({ accepted: 0, rejected: 2 });
});

it('treats the same id inside the batch as it would one after the other', async () => {
  await posthorn.api.post('/v1/events', '{"type":"batch.twice","data":0,"id":"twice-0"}');
  const answer = await posthorn.api.post(
    '/v1/events/batch',
    `{"events":[{"type":"batch.twice","data":1,"id":"twice-1"},{"type":"batch.twice","data":1,"id":"twice-1"},
      {"type":"batch.twice","data":2,"id":"twice-1"},{"type":"batch.twice","data":0,"id":"twice-0"},{"type":"batch.twice","data":9,"id":"twice-0"}]}`,
  );
  const { data } = answer.body;
  expect(data.map((item: { status: number; error?: { code: string } }) => [item.status, item.error?.code])).toEqual([
    [202, undefined],
    [202, undefined],
    [409, 'event_id_conflict'],
    [202, undefined],
    [409, 'event_id_conflict'],
  ]);
  expect(data[1].event).toEqual(data[0].event);
  expect((await rowsOf('batch.twice')).map((row) => row.data)).toEqual(['0', '1']);
  expect(await posthorn.sql(`select 1 from deliveries where type = 'batch.twice'`)).toHaveLength(2);
});

it('keeps one id apart for two tenants', async () => {
  const answer = await batch([
    { type: 'batch.tenants', data: 1, id: 'shared', tenant_id: 'a' },
    { type: 'batch.tenants', data: 2, id: 'shared', tenant_id: 'b' },
  ]);
  expect(answer.body.data.map((item: { event: { tenant_id: string } }) => item.event.tenant_id)).toEqual(['a', 'b']);
});

it('refuses only the events of a tenant that the key is not for', async () => {
  const answer = await batch(
    [
      { type: 'batch.own', data: 1 },
      { type: 'batch.own', data: 2, tenant_id: 'c' },
      { type: 'batch.own', data: 3, tenant_id: 'd' },
    ],
    await posthorn.tenant('c'),
  );
  expect(answer.body.data.map((item: { status: number }) => item.status)).toEqual([202, 202, 403]);
  expect(answer.body.data[2].error).toMatchObject({ code: 'tenant_forbidden', field: 'tenant_id' });
  expect(await rowsOf('batch.own')).toHaveLength(2);
});

it('does not deadlock with another one that has the same ids in the opposite order', async () => {
  for (let round = 0; round < 4; round++) {
    const events = Array.from({ length: 200 }, (_, n) => ({ type: 'batch.lock', data: n, id: `lock-${round}-${n}` }));
    const answers = await Promise.all([
      batch(events),
      batch(events.toReversed()),
      batch(events),
      batch(events.toReversed()),
    ]);
    for (const { status, body } of answers) expect([status, body.accepted]).toEqual([202, 200]);
  }
  expect(await rowsOf('batch.lock')).toHaveLength(800);
  expect(await posthorn.sql(`select 1 from deliveries where type = 'batch.lock'`)).toHaveLength(800);
});
