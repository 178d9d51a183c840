import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
  await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['*']);
});
afterAll(() => posthorn.stop());

const publish = (key: string, body: string, api = posthorn.api) =>
  api.post('/v1/events', body, { 'idempotency-key': key });
const batch = (key: string, body: string) => posthorn.api.post('/v1/events/batch', body, { 'idempotency-key': key });
const count = async (type: string): Promise<number> =>
  (await posthorn.sql<{ n: number }>('select count(*)::int as n from events where type = $1', [type]))[0]!.n;

it('twenty identical requests at once make one event, and all get the same bytes', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => publish('twenty', '{"type":"key.twenty","data":{}}')),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(202));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')).toHaveLength(19);
  expect(await count('key.twenty')).toBe(1);
  expect(await posthorn.sql(`select 1 from deliveries where type = 'key.twenty'`)).toHaveLength(1);
});

it('a later repetition gets the first answer, whatever became of the deliveries', async () => {
  const body = '{"type":"key.later","data":{}}';
  const first = await publish('later', body);
  await posthorn.api.post(`/v1/webhook-deliveries/${first.body.deliveries[0].id}/cancel`);
  const second = await publish('later', body);
  expect(second.text).toBe(first.text);
  expect(first.headers.get('idempotency-replayed')).toBeNull();
  expect(second.headers.get('idempotency-replayed')).toBe('true');
});

it('the same key with another body is a conflict, whatever the difference', async () => {
  await publish('other', '{"type":"key.other","data":1}');
  for (const body of [
    '{"type":"key.other","data":2}',
    '{"type":"key.other","data":1} ',
    '{"type":"key.another","data":1}',
  ])
    expect(await publish('other', body)).toMatchObject({
      status: 409,
      body: { code: 'idempotency_conflict', field: 'Idempotency-Key' },
    });
  expect(await batch('other', '{"events":[]}')).toMatchObject({ status: 409, body: { code: 'idempotency_conflict' } });
  expect((await count('key.other')) + (await count('key.another'))).toBe(1);
});

it('of different bodies at once with one key, one is accepted', async () => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => publish('race', `{"type":"key.race","data":${n}}`)),
  );
  expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([202, ...Array(11).fill(409)]);
  expect(await count('key.race')).toBe(1);
});

it('works anew after 24 hours, also for twenty at once', async () => {
  const body = '{"type":"key.expired","data":{}}';
  const first = await publish('expired', body);
  await posthorn.sql(
    `update idempotency_keys set created_at = created_at - interval '23 hours 59 minutes' where key = 'expired'`,
  );
  expect((await publish('expired', body)).headers.get('idempotency-replayed')).toBe('true');
  await posthorn.sql(
    `update idempotency_keys set created_at = created_at - interval '2 minutes' where key = 'expired'`,
  );
  const answers = await Promise.all(Array.from({ length: 20 }, () => publish('expired', body)));
  expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1);
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers[0]!.body.id).not.toBe(first.body.id);
  expect(await count('key.expired')).toBe(2);
});

it('is forgotten in the end', async () => {
  await publish('forgotten', '{"type":"key.forgotten","data":{}}');
  await posthorn.sql(`update idempotency_keys set created_at = now() - interval '26 hours' where key = 'forgotten'`);
  await posthorn.core.events.forgetOldKeys();
  expect(await posthorn.sql(`select 1 from idempotency_keys where key = 'forgotten'`)).toEqual([]);
  expect(await posthorn.sql(`select 1 from idempotency_keys where key = 'twenty'`)).toHaveLength(1);
});

it('belongs to a tenant', async () => {
  const body = '{"type":"key.tenants","data":{}}';
  const [a, b] = [await posthorn.tenant('a'), await posthorn.tenant('b')];
  const answers = [await publish('shared', body, a), await publish('shared', body, b), await publish('shared', body)];
  expect(answers.map(({ status, headers }) => [status, headers.get('idempotency-replayed')])).toEqual(
    Array.from({ length: 3 }, () => [202, null]),
  );
  expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(3);
  // A service key that names the tenant acts as that tenant.
  const named = await publish('named', '{"type":"key.tenants","data":{},"tenant_id":"a"}');
  expect(named.body.tenant_id).toBe('a');
  expect(await publish('named', body, a)).toMatchObject({ status: 409 });
});

it('is released by a request that failed', async () => {
  await posthorn.api.post('/v1/events', '{"type":"key.failed","data":1,"id":"taken"}');
  expect(await publish('failed', '{"type":"key.failed","data":2,"id":"taken"}')).toMatchObject({
    status: 409,
    body: { code: 'event_id_conflict' },
  });
  expect(await publish('failed', '{"type":"key.failed","data":')).toMatchObject({ status: 400 });
  const answer = await publish('failed', '{"type":"key.failed","data":2,"id":"free"}');
  expect(answer.status).toBe(202);
  expect(answer.headers.get('idempotency-replayed')).toBeNull();
});

it('may be any 1 – 255 printable ASCII characters', async () => {
  for (const key of ['k', 'k'.repeat(255), '~!@#$%^&*()_+{}|:"<>? ok', "'; drop table events; --"]) {
    const body = '{"type":"key.chars","data":1}';
    expect((await publish(key, body)).status).toBe(202);
    expect((await publish(key, body)).headers.get('idempotency-replayed')).toBe('true');
  }
});

it('holds for batches too', async () => {
  const body = '{"events":[{"type":"key.batch","data":1},{"type":"key.batch"}]}';
  const answers = await Promise.all(Array.from({ length: 10 }, () => batch('batch', body)));
  expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(202));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')).toHaveLength(9);
  expect(await count('key.batch')).toBe(1);
});
