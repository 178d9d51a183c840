import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import { createTestDatabase, makeTestDataDir, startTestPostgres } from '../../support/engines.js';
import { until } from '../../support/posthorn.js';

/** A Postgres of its own, to be stopped. */
const dataDir = makeTestDataDir();
let postgres: Awaited<ReturnType<typeof startTestPostgres>>;
let posthorn: RunningApi;

beforeAll(async () => {
  postgres = await startTestPostgres({ dataDir });
  posthorn = await startApi({ databaseUrl: await createTestDatabase(postgres.url) });
  await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['*']);
});
afterAll(async () => {
  await posthorn.stop();
  await postgres.stop();
});

const publish = (id: string) =>
  posthorn.api.post('/v1/events', { type: 'while.away', data: {}, id }, { 'idempotency-key': id });

describe('readiness', () => {
  it('is 200 with Temporal away, and says so', async () => {
    expect(await posthorn.api.get('/readyz')).toMatchObject({
      status: 200,
      body: { status: 'ready', database: 'ok', temporal: 'degraded' },
    });
  });

  it('is open to everybody, as is liveness', async () => {
    for (const path of ['/healthz', '/readyz']) expect((await fetch(posthorn.api.baseUrl + path)).status).toBe(200);
  });
});

describe('with the database away', () => {
  it('every call answers 503 with Retry-After, stores nothing, and works again unaided', async () => {
    expect((await publish('before')).status).toBe(202);
    await postgres.stop();

    expect(await posthorn.api.get('/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
    await until('readiness tells the truth', async () => (await posthorn.api.get('/readyz')).status === 503);
    expect((await posthorn.api.get('/readyz')).body).toEqual({
      status: 'unavailable',
      database: 'unavailable',
      temporal: 'degraded',
      reconciliation: null,
    });
    const refused = [
      await publish('during'),
      await posthorn.api.post('/v1/events', { type: 'while.away', data: {} }),
      await posthorn.api.post('/v1/events/batch', { events: [{ type: 'while.away', data: {} }] }),
      await posthorn.api.post('/v1/webhooks/subscriptions', { url: 'http://127.0.0.1:9/', events: ['a'] }),
      await posthorn.api.get('/v1/webhooks/subscriptions'),
      await posthorn.api.get('/v1/webhook-deliveries'),
      await posthorn.api.post('/v1/webhook-deliveries/whd_01KC0000000000000000000000/redeliver'),
      // A key that this process hasn't seen can't be looked up.
      await posthorn.api.withKey('never-seen-before-0123456789').get('/v1/webhook-deliveries'),
    ];
    for (const { status, headers, body } of refused) {
      expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'database_unavailable', '2']);
      expect(headers.get('content-type')).toContain('application/problem+json');
    }

    postgres = await startTestPostgres({ dataDir, port: postgres.port });
    await until('readiness is back', async () => (await posthorn.api.get('/readyz')).status === 200);
    const again = await publish('during');
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([202, null]);
    expect(await posthorn.sql('select id from events order by seq')).toEqual([{ id: 'before' }, { id: 'during' }]);
  });

  it('a connection that the server ends in the middle of a transaction is a 503 too, and leaves nothing behind', async () => {
    // The insert waits for this lock until its connection is ended.
    const runner = posthorn.core.db.createQueryRunner();
    await runner.startTransaction();
    await runner.query('lock table deliveries in exclusive mode');
    const pending = publish('cut-off');
    await until('the insert waits', async () => {
      const ended = await posthorn.sql(
        `select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      return ended.length > 0;
    });
    const answer = await pending;
    await runner.rollbackTransaction();
    await runner.release();
    expect([answer.status, answer.body.code]).toEqual([503, 'database_unavailable']);
    expect(await posthorn.sql(`select 1 from events where id = 'cut-off'`)).toEqual([]);
    expect((await publish('cut-off')).status).toBe(202);
  });
});

it('a statement that the database refuses is our own fault: 500 without a trace', async () => {
  await posthorn.sql('alter table endpoints rename column description to other_name');
  const answer = await posthorn.api.get('/v1/webhooks/subscriptions');
  expect(answer).toMatchObject({ status: 500, body: { code: 'internal_error' } });
  expect(answer.body.detail).toMatch(/request id [0-9a-f-]{36}$/);
  expect(answer.text).not.toMatch(/description|other_name|select/);
  await posthorn.sql('alter table endpoints rename column other_name to description');
  expect((await posthorn.api.get('/v1/webhooks/subscriptions')).status).toBe(200);
});
