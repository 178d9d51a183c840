import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createReplayActivities } from '../../activities/replay.js';
import type { ReplayStep } from '../../src/database/replay-store.js';
import type { TemporalGateway } from '../../src/temporal/gateway.js';
import { Sweeper } from '../../src/temporal/sweeper.js';
import { type RunningApi, startApi } from '../support/api.js';
import { type ApiClient, until } from '../support/posthorn.js';

const url = 'http://127.0.0.1:9/hook';
const nothing = (): void => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

let posthorn: RunningApi;
let api: ApiClient;
let tenants = 0;

beforeAll(async () => void (posthorn = await startApi({ extra: { POSTHORN_REPLAY_MAX_ITEMS: '300' } })));
afterAll(() => posthorn.stop());
/** A tenant of its own for each test. */
beforeEach(async () => void (api = await posthorn.tenant(`t${++tenants}`)));

const endpoint = async (settings: object = {}, events = ['*']): Promise<string> =>
  (await api.createEndpoint(url, events, { ...settings })).id;

/** Publishes, and closes the deliveries as a worker would have. Returns their ids, oldest first. */
async function closed(count: number, status = 'failed', type = 'order.paid'): Promise<string[]> {
  const events = Array.from({ length: count }, (_, n) => ({ type, data: { n } }));
  const { body } = await api.post('/v1/events/batch', { events });
  const ids = (body.data as { event: { deliveries: { id: string }[] } }[]).flatMap(({ event }) =>
    event.deliveries.map(({ id }) => id),
  );
  await close(ids, status);
  return ids.sort();
}

const reasons: Record<string, string> = {
  failed: 'attempts_exhausted',
  succeeded: 'delivered',
  cancelled: 'cancelled_by_request',
};
async function close(ids: readonly string[], status: string): Promise<void> {
  await posthorn.sql(
    `update deliveries set status = $2, reason = $3, last_status_code = case when $2 = 'succeeded' then 200 else 503 end,
            next_attempt_at = null, sweep_after = null, held_since = null, updated_at = now() where id = any($1)`,
    [ids, status, reasons[status]],
  );
  if (status !== 'failed') return;
  await posthorn.sql(
    `insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, expires_at)
     select id, round, tenant_id, event_id, endpoint_id, type, reason, 6, now() + interval '90 days' from deliveries where id = any($1)`,
    [ids],
  );
}

async function create(body: object, path = '/v1/replays', headers: Record<string, string> = {}) {
  const answer = await api.post(path, { rate_per_second: 1_000, ...body }, headers);
  expect(answer.status, answer.text).toBe(202);
  return answer.body as { id: string; status: string; progress: { total: number } };
}

/** Steps until all of it is started or skipped, as the workflow does. */
async function runToEnd(id: string): Promise<string[]> {
  const started: string[] = [];
  await until('the replay is completed', async () => {
    const step = await posthorn.core.replays.startSome(id);
    started.push(...step!.deliveries.map((one) => one.id));
    return step!.status === 'completed';
  });
  return started;
}

const detail = async (id: string) => (await api.get(`/v1/replays/${id}`)).body;
const rows = async (ids: readonly string[]) =>
  posthorn.sql<{ id: string; status: string; reason: string; round: number; wake_requested: boolean }>(
    'select id, status, reason, round, wake_requested, request_reason from deliveries where id = any($1) order by id',
    [ids],
  );

describe('a replay', () => {
  it('sends its deliveries again in their next round, oldest first, without force', async () => {
    await endpoint();
    const ids = await closed(3);
    const { id, status, progress } = await create({ filter: { type: 'order.paid' }, reason: 'receiver is back' });
    expect([status, progress.total]).toEqual(['running', 3]);
    expect(await runToEnd(id)).toEqual(ids);
    for (const row of await rows(ids))
      expect(row).toMatchObject({
        status: 'pending',
        reason: 'replayed',
        round: 2,
        wake_requested: false,
        request_reason: 'receiver is back',
      });
    expect(await detail(id)).toMatchObject({
      status: 'completed',
      progress: { total: 3, started: 3, skipped: 0, waiting: 0 },
      outcomes: { succeeded: 0, failed: 0, in_progress: 3, skipped: {} },
      estimated_end_at: null,
    });
    await close(ids.slice(0, 2), 'succeeded');
    expect((await detail(id)).outcomes).toMatchObject({ succeeded: 2, in_progress: 1 });
  });

  it('sends the newest first where that is wished', async () => {
    await endpoint();
    const ids = await closed(3);
    const { id } = await create({ filter: { status: 'failed' }, order: 'newest' });
    const order = await posthorn.sql<{ delivery_id: string }>(
      'select delivery_id from replay_items where replay_id = $1 order by seq',
      [id],
    );
    expect(order.map((item) => item.delivery_id)).toEqual(ids.toReversed());
  });

  it('has a fixed set: what fails later is not of it', async () => {
    await endpoint();
    const ids = await closed(2);
    const { id } = await create({ filter: { status: 'failed' } });
    const [later] = await closed(1);
    expect(await runToEnd(id)).toEqual(ids);
    expect((await rows([later!]))[0]).toMatchObject({ status: 'failed', round: 1 });
  });

  it('takes only what every condition names', async () => {
    const [one, other] = [await endpoint(), await endpoint()];
    const failed = await closed(2);
    await closed(1, 'failed', 'order.shipped');
    await closed(1, 'succeeded');
    await closed(1, 'cancelled');
    const count = async (filter: object) => (await api.post('/v1/replays', { filter, dry_run: true })).body.total;
    const all = (
      await posthorn.sql<{ n: number }>(`select count(*)::int as n from deliveries where tenant_id = $1`, [
        `t${tenants}`,
      ])
    )[0]!.n;
    expect(all).toBe(10);
    expect(await count({ type: 'order.paid' })).toBe(4);
    expect(await count({ endpoint_id: one })).toBe(3);
    expect(await count({ endpoint_id: other, type: 'order.shipped' })).toBe(1);
    expect(await count({ status: 'succeeded' })).toBe(2);
    expect(await count({ reason: 'cancelled_by_request' })).toBe(2);
    expect(await count({ reason: 'cancelled_by_request', status: 'failed' })).toBe(0);
    expect(await count({ http_status: 503 })).toBe(6);
    expect(await count({ http_status: 500 })).toBe(0);
    const [{ event_id: eventId, created_at: at }] = (await posthorn.sql(
      'select event_id, created_at from deliveries where id = $1',
      [failed[0]],
    )) as [{ event_id: string; created_at: Date }];
    expect(await count({ event_id: eventId })).toBe(2);
    expect(await count({ created_after: at.toISOString() })).toBe(6);
    expect(await count({ created_before: at.toISOString() })).toBe(0);
    expect((await api.get('/v1/replays')).body.data).toEqual([]);
  });

  it('skips, with the reason, what succeeded or went on its way meanwhile', async () => {
    await endpoint();
    const [done, open, rest] = (await closed(3)) as [string, string, string];
    const { id } = await create({ delivery_ids: [rest, open, done] });
    await posthorn.sql(`update deliveries set status = 'succeeded', round = 2 where id = $1`, [done]);
    await posthorn.sql(`update deliveries set status = 'retrying', round = 2 where id = $1`, [open]);
    expect(await runToEnd(id)).toEqual([rest]);
    expect((await detail(id)).outcomes.skipped).toEqual({ succeeded_meanwhile: 1, in_progress: 1 });
    expect((await rows([done, open])).map(({ status, round }) => [status, round])).toEqual([
      ['succeeded', 2],
      ['retrying', 2],
    ]);
  });

  it('sends what had succeeded when it was asked for by id, once', async () => {
    await endpoint();
    const ids = await closed(1, 'succeeded');
    const { id } = await create({ delivery_ids: [...ids, ...ids] });
    expect(await runToEnd(id)).toEqual(ids);
    const again = await create({ delivery_ids: ids });
    await close(ids, 'succeeded');
    await posthorn.sql(`update deliveries set round = round + 1 where id = $1`, [ids[0]]);
    expect(await runToEnd(again.id)).toEqual([]);
  });

  it.each([
    ['disabled', 'skipped', 'endpoint_disabled'],
    ['expired', 'skipped', 'endpoint_expired'],
    ['deleted', 'skipped', 'endpoint_deleted'],
    ['paused', 'held', 'endpoint_paused'],
    ['pending_verification', 'held', 'endpoint_unverified'],
  ])('of an endpoint that is %s is %s', async (status, what, reason) => {
    const endpointId = await endpoint();
    const ids = await closed(1);
    const { id } = await create({ delivery_ids: ids });
    await posthorn.sql(
      status === 'deleted'
        ? 'update endpoints set deleted_at = now() where id = $1'
        : `update endpoints set status = '${status}' where id = $1`,
      [endpointId],
    );
    expect(await runToEnd(id)).toEqual([]);
    if (what === 'held') expect((await rows(ids))[0]).toMatchObject({ status: 'held', reason, round: 2 });
    else expect((await detail(id)).outcomes.skipped).toEqual({ [reason]: 1 });
  });

  it('waits for its turn where the endpoint has a rate limit, as a published one does', async () => {
    await endpoint({ rate_limit_per_second: 2 });
    const ids = await closed(10);
    const { id } = await create({ delivery_ids: ids });
    await until('all are started', async () => {
      await posthorn.core.replays.startSome(id);
      return (await detail(id)).status === 'completed';
    });
    const states = (await rows(ids)).map(({ status, reason }) => `${status} ${reason}`);
    expect(states.filter((state) => state === 'held rate_limited').length).toBeGreaterThanOrEqual(6);
    expect(states.filter((state) => state === 'pending replayed').length).toBeGreaterThanOrEqual(1);
  });

  it('is refused, and stores nothing, where it would take too many', async () => {
    await endpoint();
    await closed(150);
    await closed(151);
    const filter = { status: 'failed' };
    expect((await api.post('/v1/replays', { filter, dry_run: true })).body).toEqual({
      dry_run: true,
      total: 301,
      max_total: 300,
    });
    const refused = await api.post('/v1/replays', { filter });
    expect(refused).toMatchObject({ status: 422, body: { code: 'replay_too_large' } });
    expect(refused.body.detail).toContain('narrow');
    expect((await api.get('/v1/replays')).body.data).toEqual([]);
  });

  it('is completed at once where there is nothing to send', async () => {
    expect(await create({ filter: { type: 'never.published' } })).toMatchObject({
      status: 'completed',
      progress: { total: 0 },
    });
  });

  it('of two workers at once sends nothing twice', async () => {
    await endpoint();
    const ids = await closed(250);
    const { id } = await create({ filter: { status: 'failed' } });
    const steps: ReplayStep[] = [];
    const worker = () =>
      until('the replay is completed', async () => {
        const step = (await posthorn.core.replays.startSome(id))!;
        steps.push(step);
        return step.status === 'completed';
      });
    await Promise.all(Array.from({ length: 6 }, worker));
    const started = steps.flatMap((step) => step.deliveries.map((one) => one.id));
    expect(started.toSorted()).toEqual(ids);
    expect(new Set((await rows(ids)).map(({ round }) => round))).toEqual(new Set([2]));
  });

  it('of two jobs with the same deliveries, at once, sends none twice', async () => {
    await endpoint();
    const ids = await closed(120);
    const [a, b] = [
      await create({ filter: { status: 'failed' } }),
      await create({ filter: { status: 'failed' }, order: 'newest' }),
    ];
    const started = (await Promise.all([runToEnd(a.id), runToEnd(b.id)])).flat();
    expect(started.toSorted()).toEqual(ids);
  });

  it('keeps its rate by the database’s clock, whoever asks and however often', async () => {
    await endpoint();
    await closed(100);
    const { id } = await create({ filter: { status: 'failed' }, rate_per_second: 20 });
    const startedAt = Date.now();
    let started = 0;
    await until('60 are started', async () => {
      // Many workers, with clocks of their own.
      const steps = await Promise.all(Array.from({ length: 4 }, () => posthorn.core.replays.startSome(id)));
      started += steps.reduce((sum, step) => sum + step!.deliveries.length, 0);
      const seconds = (Date.now() - startedAt) / 1_000;
      expect(started).toBeLessThanOrEqual(20 * (seconds + 1) + 2);
      return started >= 60;
    });
    expect(Date.now() - startedAt).toBeGreaterThan(1_900);
  });

  it('resolves the letters of those that succeed by who asked, and skips resolved ones', async () => {
    await endpoint();
    const [one, two] = (await closed(2)) as [string, string];
    const { id } = await create(
      { letter_ids: [`${one}.1`, `${two}.1`], reason: 'all back' },
      '/v1/dead-letters/replay',
    );
    await posthorn.sql(`update dead_letters set resolved_at = now(), resolution = 'discarded' where delivery_id = $1`, [
      two,
    ]);
    expect(await runToEnd(id)).toEqual([one]);
    expect((await detail(id)).outcomes.skipped).toEqual({ letter_resolved: 1 });
    const [letter] = await posthorn.sql(
      'select resolved_by, resolved_reason from dead_letters where delivery_id = $1',
      [one],
    );
    expect(letter).toMatchObject({ resolved_by: expect.stringMatching(/^key_/), resolved_reason: 'all back' });
    // By filter, discarded ones are left out from the beginning.
    expect((await api.post('/v1/replays', { filter: { status: 'failed' }, dry_run: true })).body.total).toBe(0);
  });

  it('takes open letters by filter', async () => {
    const endpointId = await endpoint();
    const ids = await closed(3);
    await posthorn.sql(`update dead_letters set resolved_at = now(), resolution = 'expired' where delivery_id = $1`, [
      ids[0],
    ]);
    const { id } = await create({ filter: { endpoint_id: endpointId } }, '/v1/dead-letters/replay');
    expect(await runToEnd(id)).toEqual(ids.slice(1));
  });

  it('is made once per idempotency key', async () => {
    await endpoint();
    const delivery_ids = await closed(1);
    const key = { 'idempotency-key': 'once' };
    const first = await create({ delivery_ids }, '/v1/replays', key);
    const again = await api.post('/v1/replays', { rate_per_second: 1_000, delivery_ids }, key);
    expect(again.body).toEqual(first);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(await api.post('/v1/replays', { delivery_ids }, key)).toMatchObject({
      status: 409,
      body: { code: 'idempotency_conflict' },
    });
    expect((await api.get('/v1/replays')).body.data).toHaveLength(1);
  });
});

describe('pause, resume and cancel', () => {
  it('count at once, and when they are repeated', async () => {
    await endpoint();
    await closed(20);
    const { id } = await create({ filter: { status: 'failed' }, rate_per_second: 5 });
    const act = (what: string) => api.post(`/v1/replays/${id}/${what}`);
    expect(await act('pause')).toMatchObject({ status: 202, body: { status: 'paused', estimated_end_at: null } });
    expect(await act('pause')).toMatchObject({ status: 202, body: { status: 'paused' } });
    expect(await posthorn.core.replays.startSome(id)).toMatchObject({ status: 'paused', started: 0, deliveries: [] });
    expect(await act('resume')).toMatchObject({ status: 202, body: { status: 'running' } });
    await until('one is started', async () => (await posthorn.core.replays.startSome(id))!.started > 0);
    expect(await act('cancel')).toMatchObject({ status: 202, body: { status: 'cancelled' } });
    expect(await act('cancel')).toMatchObject({ status: 202 });
    for (const what of ['pause', 'resume'])
      expect(await act(what)).toMatchObject({ status: 409, body: { code: 'replay_closed' } });
    expect(await posthorn.core.replays.startSome(id)).toMatchObject({ status: 'cancelled', deliveries: [] });
  });

  it('leave to the sweeper what its workflow was not told', async () => {
    await endpoint();
    await closed(2);
    const { id } = await create({ filter: { status: 'failed' } });
    const due = async () => {
      await posthorn.sql(`update replays set sweep_after = sweep_after - interval '1 h' where id = $1`, [id]);
      return (await posthorn.core.replays.toSweep()).includes(id);
    };
    expect(await due()).toBe(true);
    await posthorn.core.replays.lookAgainLater([id]);
    expect((await posthorn.core.replays.toSweep()).includes(id)).toBe(false);
    await api.post(`/v1/replays/${id}/pause`);
    expect(await due()).toBe(true);
    // Its workflow has looked.
    await posthorn.core.replays.startSome(id);
    expect(await due()).toBe(false);
    await api.post(`/v1/replays/${id}/resume`);
    expect(await due()).toBe(true);
    await runToEnd(id);
    expect(await due()).toBe(false);
  });
});

const recover = (endpointId: string, since: Date, more: object = {}) =>
  api.post(`/v1/webhooks/subscriptions/${endpointId}/recover`, {
    since: since.toISOString(),
    rate_per_second: 1_000,
    ...more,
  });
const state = (endpointId: string, status: string) =>
  posthorn.sql('update endpoints set status = $2 where id = $1', [endpointId, status]);

const sweep = async (runs: Record<string, string>): Promise<string[]> => {
  const told: string[] = [];
  const { sweeps: store, waiting, health, replays } = posthorn.core;
  const gateway = {
    describe: async () => 'running',
    describeReplay: async (id: string) => runs[id] ?? 'running',
    replayChanged: async (id: string) => void told.push(id),
    endpointChanged: async () => undefined,
    letterAdded: async () => undefined,
    storeId: async () => null,
  } as unknown as TemporalGateway;
  await new Sweeper({
    store,
    waiting,
    health,
    replays,
    gateway,
    housekeeping: async () => undefined,
    log,
  }).sweepOnce();
  return told;
};

describe('the sweeper', () => {
  it('starts or wakes what nobody works on, and cancels what was terminated by hand', async () => {
    await endpoint();
    await closed(2);
    const [lost, ended, fresh] = [
      await create({ filter: { status: 'failed' } }),
      await create({ filter: { status: 'failed' } }),
      await create({ filter: { status: 'failed' } }),
    ];
    await posthorn.sql(`update replays set sweep_after = now() - interval '1 s' where id = any($1)`, [
      [lost.id, ended.id],
    ]);
    await posthorn.sql(`update replays set sweep_after = now() + interval '1 h' where id = $1`, [fresh.id]);
    const told = await sweep({ [lost.id]: 'not_found', [ended.id]: 'terminated' });
    expect(told).toContain(lost.id);
    expect(told).not.toContain(ended.id);
    expect(told).not.toContain(fresh.id);
    expect(await detail(ended.id)).toMatchObject({ status: 'cancelled', progress: { waiting: 2 } });
    expect(await posthorn.core.replays.startSome(ended.id)).toMatchObject({ deliveries: [] });
    expect(await sweep({ [ended.id]: 'terminated' })).not.toContain(lost.id);
  });
});

describe('recover', () => {
  it('brings what failed since then and what was missed meanwhile, in order, and only what the endpoint wants', async () => {
    const since = new Date(Date.now() - 60_000);
    const endpointId = await endpoint({}, ['order.*']);
    const failed = await closed(2);
    const [delivered] = await closed(1, 'succeeded');
    await state(endpointId, 'disabled');
    const missed: string[] = [];
    for (const n of [1, 2, 3]) missed.push((await api.publish('order.paid', { n })).id);
    await api.publish('invoice.paid');
    expect(await recover(endpointId, since)).toMatchObject({ status: 409, body: { code: 'endpoint_unavailable' } });
    expect((await recover(endpointId, since, { dry_run: true })).body.total).toBe(5);
    await state(endpointId, 'active');
    const { id } = (await recover(endpointId, since)).body;
    const started = await runToEnd(id);
    expect(started.slice(0, 2)).toEqual(failed);
    const made = await posthorn.sql(
      'select event_id, status, reason, round from deliveries where endpoint_id = $1 and event_id = any($2) order by id',
      [endpointId, missed],
    );
    expect(made).toEqual(missed.map((event_id) => ({ event_id, status: 'pending', reason: 'replayed', round: 1 })));
    expect((await rows([delivered!]))[0]).toMatchObject({ status: 'succeeded', round: 1 });
    expect(await detail(id)).toMatchObject({ kind: 'recover', outcomes: { in_progress: 5 } });
  });

  it('leaves out what is older, and what another tenant published', async () => {
    const endpointId = await endpoint();
    await closed(1);
    await state(endpointId, 'disabled');
    await api.publish('order.paid');
    const other = await posthorn.tenant(`other${tenants}`);
    await other.publish('order.paid');
    await state(endpointId, 'active');
    expect((await recover(endpointId, new Date(Date.now() + 60_000), { dry_run: true })).body.total).toBe(0);
    expect((await recover(endpointId, new Date(0), { dry_run: true })).body.total).toBe(2);
  });

  it('asked for twice at once, makes one delivery of each missed event', async () => {
    const endpointId = await endpoint();
    await state(endpointId, 'disabled');
    for (let n = 0; n < 40; n++) await api.publish('order.paid', { n });
    await state(endpointId, 'active');
    const jobs = await Promise.all([recover(endpointId, new Date(0)), recover(endpointId, new Date(0))]);
    expect(jobs.map(({ body }) => body.progress.total)).toEqual([40, 40]);
    const started = (await Promise.all(jobs.map(({ body }) => runToEnd(body.id)))).flat();
    expect(started).toHaveLength(40);
    const made = await posthorn.sql<{ event_id: string }>('select event_id from deliveries where endpoint_id = $1', [
      endpointId,
    ]);
    expect(new Set(made.map(({ event_id }) => event_id)).size).toBe(40);
    expect(made).toHaveLength(40);
  });

  it('sees an event whose transaction commits just now', async () => {
    const endpointId = await endpoint();
    await state(endpointId, 'disabled');
    const late = posthorn.core.db.createQueryRunner();
    await late.startTransaction();
    // It matched the endpoint as it was.
    await late.query(
      `insert into events (tenant_id, id, type, data, created_at, body_hash) values ($1, 'late', 'order.paid', '{}', now(), '')`,
      [`t${tenants}`],
    );
    await state(endpointId, 'active');
    const startedAt = new Date();
    const asked = recover(endpointId, new Date(0));
    await until('it waits for that transaction', async () => {
      // By this connection: one of the pool would be the very one that has asked last, and show this question in its place.
      await late.query('select pg_stat_clear_snapshot()');
      const [row] = (await late.query(
        `select exists (select from pg_stat_activity where datname = current_database() and query like '%as decided' and query_start > $1) as waits`,
        [startedAt],
      )) as [{ waits: boolean }];
      return row.waits;
    });
    await late.commitTransaction();
    await late.release();
    expect((await asked).body.progress.total).toBe(1);
  });
});

describe('another tenant', () => {
  it('finds no replay, replays no delivery, recovers no endpoint', async () => {
    const endpointId = await endpoint();
    const ids = await closed(1);
    const { id } = await create({ delivery_ids: ids });
    const other = await posthorn.tenant(`x${tenants}`);
    const routes: [string, string, object?][] = [
      ['GET', `/v1/replays/${id}`],
      ['POST', `/v1/replays/${id}/pause`],
      ['POST', `/v1/replays/${id}/resume`],
      ['POST', `/v1/replays/${id}/cancel`],
      ['POST', '/v1/replays', { delivery_ids: ids }],
      ['POST', '/v1/dead-letters/replay', { letter_ids: [`${ids[0]}.1`] }],
      ['POST', `/v1/webhooks/subscriptions/${endpointId}/recover`, { since: '2026-01-31T12:00:00Z' }],
    ];
    for (const [method, path, body] of routes)
      expect(await other.call(method, path, body), path).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect((await other.get('/v1/replays')).body.data).toEqual([]);
    for (const path of ['/v1/replays', '/v1/dead-letters/replay'])
      expect((await other.post(path, { filter: { endpoint_id: endpointId }, dry_run: true })).body.total).toBe(0);
    expect((await detail(id)).status).toBe('running');
    // A service key names the tenant.
    const service = posthorn.api;
    expect((await service.get(`/v1/replays/${id}?tenant_id=t${tenants}`)).status).toBe(200);
    expect((await service.post('/v1/replays', { delivery_ids: ids, tenant_id: `t${tenants}` })).status).toBe(202);
    expect((await other.post('/v1/replays', { delivery_ids: ids, tenant_id: `t${tenants}` })).status).toBe(403);
  });
});

describe('a bad request', () => {
  it.each([
    [{}, null, 'either'],
    [{ delivery_ids: ['whd_01KC0000000000000000000002'], filter: { status: 'failed' } }, null, 'either'],
    [{ filter: {} }, 'filter', 'at least one condition'],
    [{ filter: { status: 'pending' } }, 'filter.status', 'closed'],
    [{ filter: { status: 'failed', colour: 'red' } }, 'filter.colour', 'not known'],
    [{ filter: { created_after: 'yesterday' } }, 'filter.created_after', 'RFC 3339'],
    [{ filter: { http_status: '503' } }, 'filter.http_status', '100 to 599'],
    [{ delivery_ids: [] }, 'delivery_ids', '1 – 1000'],
    [{ delivery_ids: ['evt_1'] }, 'delivery_ids.0', 'whd_'],
    [{ filter: { status: 'failed' }, rate_per_second: 0 }, 'rate_per_second', '1 to 1000'],
    [{ filter: { status: 'failed' }, order: 'random' }, 'order', 'oldest'],
    [{ filter: { status: 'failed' }, reason: 'x'.repeat(501) }, 'reason', '500'],
  ])('%j is a 422', async (body, field, detail) => {
    const answer = await api.post('/v1/replays', body);
    expect(answer.status).toBe(422);
    expect(answer.body.field ?? null).toBe(field);
    expect(answer.body.detail).toContain(detail);
  });

  it('names the id that is nobody’s', async () => {
    const delivery_ids = ['whd_01KC0000000000000000000002'];
    const answer = await api.post('/v1/replays', { delivery_ids });
    expect(answer).toMatchObject({ status: 404, body: { detail: expect.stringContaining(delivery_ids[0]!) } });
    expect((await api.get('/v1/replays')).body.data).toEqual([]);
  });
});

describe('the activity', () => {
  it('starts the workflows of what was written, and goes on although Temporal is away', async () => {
    await endpoint();
    const ids = await closed(30);
    const { id } = await create({ filter: { status: 'failed' } });
    const asked: string[] = [];
    const activities = createReplayActivities({
      replays: posthorn.core.replays,
      starter: {
        startDelivery: async (delivery, by, which) => {
          asked.push(delivery.id);
          expect([by, which]).toEqual(['replay', 'again']);
          if (asked.length > 5) throw new Error('Temporal is away');
        },
      },
      log,
      now: Date.now,
    });
    const batch = await activities.startReplayBatch({ replayId: id });
    expect(batch).toMatchObject({ kind: 'started', status: 'completed', started: 30 });
    expect(new Set(ids)).toEqual(expect.objectContaining({ size: 30 }));
    expect(asked.every((one) => ids.includes(one))).toBe(true);
    // What wasn't started has a row that the sweeper finds.
    const open = await posthorn.sql(
      `select 1 from deliveries where id = any($1) and status = 'pending' and sweep_after > now()`,
      [ids],
    );
    expect(open).toHaveLength(30);
  });

  it('knows no replay that isn’t there', async () => {
    const activities = createReplayActivities({
      replays: posthorn.core.replays,
      starter: { startDelivery: async () => undefined },
      log,
      now: Date.now,
    });
    expect(await activities.startReplayBatch({ replayId: 'rpl_01KC0000000000000000000000' })).toEqual({
      kind: 'unknown_replay',
    });
  });
});
