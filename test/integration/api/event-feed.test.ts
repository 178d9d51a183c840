import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prepareFeed } from '../../../src/database/event-feed-store.js';
import { type RunningApi, startApi } from '../../support/api.js';
import { type ApiClient, until } from '../../support/posthorn.js';

let posthorn: RunningApi;
let tenants = 0;

beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

/** A tenant of its own, so that a test sees its events only. */
const newTenant = (): Promise<ApiClient> => posthorn.tenant(`feed-${++tenants}`);
const ids = (page: { body: { data: { id: string }[] } }): string[] => page.body.data.map(({ id }) => id);

async function publish(api: ApiClient, id: string, type = 'thing.happened'): Promise<string> {
  const answer = await api.post('/v1/events', { type, data: {}, id });
  expect(answer.status).toBe(202);
  return id;
}

/** A reader that follows the feed until nothing comes. */
class Reader {
  readonly seen: string[] = [];
  private after: string | null = null;

  constructor(
    private readonly api: ApiClient,
    private readonly query = 'limit=3',
  ) {}

  async readOn(): Promise<string[]> {
    for (;;) {
      const page = await this.api.get(`/v1/events?${this.query}${this.after === null ? '' : `&after=${this.after}`}`);
      expect(page.status).toBe(200);
      this.seen.push(...ids(page));
      if (page.body.next_cursor === null) return this.seen;
      this.after = page.body.next_cursor as string;
    }
  }
}

/** A connection with a transaction that somebody holds open. */
async function openTransaction(): Promise<Client> {
  const client = new Client({ connectionString: posthorn.databaseUrl });
  await client.connect();
  await client.query('begin');
  return client;
}

const insertEvent = `insert into events (tenant_id, id, type, data, created_at, body_hash) values ($1, $2, 'thing.happened', '{}', now(), '\\x00')`;

describe('a reader that follows the events', () => {
  it('sees each once and in order, page by page, and goes on where it stood', async () => {
    const api = await newTenant();
    const reader = new Reader(api);
    expect(await reader.readOn()).toEqual([]);
    for (let n = 0; n < 8; n += 1) await publish(api, `e${n}`);
    expect(await reader.readOn()).toEqual(['e0', 'e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7']);
    await publish(api, 'e8');
    expect((await reader.readOn()).slice(8)).toEqual(['e8']);
  });

  it('misses no event whose transaction commits after later ones', async () => {
    const api = await newTenant();
    const tenant = `feed-${tenants}`;
    const reader = new Reader(api);
    await publish(api, 'before');
    const late = await openTransaction();
    await late.query(insertEvent, [tenant, 'late']);
    await publish(api, 'overtakes');
    expect(await reader.readOn()).toEqual(['before']);
    await late.query('commit');
    await late.end();
    expect(await reader.readOn()).toEqual(['before', 'late', 'overtakes']);
  });

  it('misses none that was written inside a savepoint, nor sees one that was rolled back', async () => {
    const api = await newTenant();
    const tenant = `feed-${tenants}`;
    const reader = new Reader(api);
    const late = await openTransaction();
    await late.query('savepoint a');
    await late.query(insertEvent, [tenant, 'undone']);
    await late.query('rollback to savepoint a');
    await late.query('savepoint b');
    await late.query(insertEvent, [tenant, 'kept']);
    await late.query('release savepoint b');
    await publish(api, 'overtakes');
    expect(await reader.readOn()).toEqual([]);
    await late.query('commit');
    await late.end();
    expect(await reader.readOn()).toEqual(['kept', 'overtakes']);
  });

  it('may begin after an event that is not shown yet, and still misses none', async () => {
    const api = await newTenant();
    const tenant = `feed-${tenants}`;
    const late = await openTransaction();
    await late.query(insertEvent, [tenant, 'late']);
    await publish(api, 'mine');
    const begun = await api.get('/v1/events?after=mine');
    expect(begun.body).toEqual({ data: [], next_cursor: null, prev_cursor: null });
    const position = await posthorn.core.feed.positionOf(tenant, 'mine');
    await late.query('commit');
    await late.end();
    const page = await posthorn.core.feed.page(
      {
        tenantId: tenant,
        cursor: { direction: 'next', ...position! },
        limit: 10,
        type: null,
        endpointId: null,
        operational: false,
      },
      null,
    );
    expect(page.rows.map(({ id }) => id)).toEqual(['late', 'mine']);
  });

  it('sees all that many writers commit at once, in random order, exactly once', async () => {
    const api = await newTenant();
    const tenant = `feed-${tenants}`;
    const reader = new Reader(api, 'limit=7');
    const writers = Array.from({ length: 6 }, async (_, w) => {
      const client = new Client({ connectionString: posthorn.databaseUrl });
      await client.connect();
      for (let n = 0; n < 15; n += 1) {
        await client.query('begin');
        await client.query(insertEvent, [tenant, `w${w}-${n}`]);
        await client.query('select pg_sleep($1)', [Math.random() * 0.03]);
        await client.query(n % 5 === 4 ? 'rollback' : 'commit');
      }
      await client.end();
    });
    const writing = { goesOn: true };
    const all = Promise.all(writers).finally(() => (writing.goesOn = false));
    while (writing.goesOn) await reader.readOn();
    await all;
    await until('all are shown', async () => (await reader.readOn()).length >= 6 * 12);
    expect(reader.seen).toHaveLength(6 * 12);
    expect(new Set(reader.seen).size).toBe(6 * 12);
    const again = new Reader(api, 'limit=250');
    expect(await again.readOn()).toEqual(reader.seen);
  });

  it('waits for no more than ten seconds for a transaction that nobody ends', { timeout: 30_000 }, async () => {
    const api = await newTenant();
    const tenant = `feed-${tenants}`;
    const stuck = posthorn.core.db.createQueryRunner();
    await stuck.startTransaction();
    await stuck.query(insertEvent, [tenant, 'never']);
    await publish(api, 'waits');
    expect(ids(await api.get('/v1/events'))).toEqual([]);
    await until('the lag is known', async () => (await posthorn.core.feed.lagMs()) > 500);
    await until('the stuck one is ended', async () => ids(await api.get('/v1/events'))[0] === 'waits', 20_000);
    expect(await posthorn.core.feed.lagMs()).toBe(0);
    await stuck.release();
  });
});

describe('the list of events', () => {
  it('goes back by prev_cursor to the page before', async () => {
    const api = await newTenant();
    for (let n = 0; n < 5; n += 1) await publish(api, `e${n}`);
    const first = await api.get('/v1/events?limit=2');
    expect([ids(first), first.body.prev_cursor]).toEqual([['e0', 'e1'], null]);
    const second = await api.get(`/v1/events?limit=2&after=${first.body.next_cursor}`);
    expect(ids(second)).toEqual(['e2', 'e3']);
    const back = await api.get(`/v1/events?limit=2&after=${second.body.prev_cursor}`);
    expect(ids(back)).toEqual(['e0', 'e1']);
    const forth = await api.get(`/v1/events?limit=2&after=${back.body.next_cursor}`);
    expect(ids(forth)).toEqual(['e2', 'e3']);
  });

  it('goes on after the id of an event', async () => {
    const api = await newTenant();
    for (const id of ['one', 'two:a.b', 'three']) await publish(api, id);
    expect(ids(await api.get('/v1/events?after=one'))).toEqual(['two:a.b', 'three']);
    expect(ids(await api.get(`/v1/events?after=${encodeURIComponent('two:a.b')}`))).toEqual(['three']);
  });

  it('says what is wrong with a position that it does not know', async () => {
    const api = await newTenant();
    const stranger = await newTenant();
    await publish(stranger, 'not-yours');
    for (const after of ['not-yours', 'unknown', '~bm9uc2Vuc2U', '~', 'a b', 'x'.repeat(201)]) {
      const answer = await api.get(`/v1/events?after=${encodeURIComponent(after)}`);
      expect([after, answer.status, answer.body.code]).toEqual([after, 422, 'invalid_field']);
      expect(answer.body.field).toBe('after');
    }
  });

  it('takes a type, and pages over what lies between', async () => {
    const api = await newTenant();
    for (let n = 0; n < 6; n += 1) await publish(api, `e${n}`, n % 3 === 0 ? 'rare.seen' : 'often.seen');
    expect(ids(await api.get('/v1/events?type=rare.seen'))).toEqual(['e0', 'e3']);
    expect(await new Reader(api, 'limit=1&type=rare.seen').readOn()).toEqual(['e0', 'e3']);
    expect((await api.get('/v1/events?type=%25')).status).toBe(422);
  });

  it('shows an endpoint the types that it subscribes to, each with what became of it there', async () => {
    const api = await newTenant();
    const missed = await publish(api, 'before', 'order.paid');
    const { id: endpointId } = await api.createEndpoint('http://127.0.0.1:9/', ['order.*']);
    await api.createEndpoint('http://127.0.0.1:9/other', ['*']);
    await publish(api, 'wanted', 'order.shipped');
    await publish(api, 'unwanted', 'invoice.paid');
    await publish(api, 'too-deep', 'order.paid.twice');
    const page = await api.get(`/v1/events?endpoint_id=${endpointId}`);
    expect(ids(page)).toEqual([missed, 'wanted']);
    expect(page.body.data[0].delivery).toBeNull();
    const [row] = await posthorn.sql<{ id: string }>(
      `select id from deliveries where event_id = 'wanted' and endpoint_id = $1`,
      [endpointId],
    );
    expect(page.body.data[1].delivery).toEqual({
      id: row!.id,
      status: 'pending',
      reason: 'published',
      attempt_count: 0,
      last_status_code: null,
    });
  });

  it('knows no endpoint of another tenant', async () => {
    const stranger = await newTenant();
    const { id } = await stranger.createEndpoint('http://127.0.0.1:9/', ['*']);
    const api = await newTenant();
    expect((await api.get(`/v1/events?endpoint_id=${id}`)).status).toBe(404);
  });

  it('goes on over many events of which none is chosen', async () => {
    const api = await newTenant();
    const tenant = `feed-${tenants}`;
    await posthorn.sql(
      `insert into events (tenant_id, id, type, data, created_at, body_hash)
       select $1, 'bulk-' || n, 'bulk.made', '{}', now(), '\\x00' from generate_series(1, 12000) n`,
      [tenant],
    );
    const { id: endpointId } = await api.createEndpoint('http://127.0.0.1:9/', ['needle.found']);
    await publish(api, 'needle', 'needle.found');
    const first = await api.get(`/v1/events?endpoint_id=${endpointId}`);
    expect(first.body.data).toEqual([]);
    expect(first.body.next_cursor).toMatch(/^~/);
    expect(await new Reader(api, `endpoint_id=${endpointId}`).readOn()).toEqual(['needle']);
  });

  it('leaves events about Posthorn itself out, unless they are asked for', async () => {
    const api = await newTenant();
    await publish(api, 'plain');
    await publish(api, 'about-us');
    await posthorn.sql(`update events set operational = true where id = 'about-us'`);
    expect(ids(await api.get('/v1/events'))).toEqual(['plain']);
    expect(ids(await api.get('/v1/events?operational=true'))).toEqual(['plain', 'about-us']);
  });
});

describe('one event', () => {
  it('comes with its data byte for byte, and with its deliveries', async () => {
    const api = await newTenant();
    const { id: endpointId } = await api.createEndpoint('http://127.0.0.1:9/', ['*']);
    const data = '{ "b":1.50,"a" : 12345678901234567890, "u":"\\u00e4" }';
    await api.post('/v1/events', `{"id":"exact","type":"thing.happened","data":${data}}`);
    const answer = await api.get('/v1/events/exact');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toContain('application/json');
    expect(answer.text).toContain(`"data":${data}}`);
    expect(answer.body).toMatchObject({ id: 'exact', type: 'thing.happened', payload_purged_at: null });
    expect(answer.body.deliveries).toMatchObject([{ endpoint_id: endpointId, status: 'pending', attempt_count: 0 }]);
  });

  it('says so once its payload was purged', async () => {
    const api = await newTenant();
    await publish(api, 'stripped');
    await posthorn.sql(`update events set data = null, payload_purged_at = now() where id = 'stripped'`);
    const answer = await api.get('/v1/events/stripped');
    expect(answer.body.data).toBeNull();
    expect(Date.parse(answer.body.payload_purged_at)).toBeGreaterThan(Date.now() - 60_000);
  });

  it('is found under the longest id, and not by another tenant', async () => {
    const api = await newTenant();
    const id = `${'x'.repeat(190)}.:-_012345`;
    await publish(api, id);
    expect((await api.get(`/v1/events/${encodeURIComponent(id)}`)).body.id).toBe(id);
    const stranger = await newTenant();
    expect((await stranger.get(`/v1/events/${encodeURIComponent(id)}`)).status).toBe(404);
    expect((await stranger.get('/v1/events/%00')).status).toBe(404);
  });
});

describe('a restored database', () => {
  it('begins a new epoch where the stored transaction ids are ahead of the cluster, and stays in it', async () => {
    const api = await newTenant();
    const reader = new Reader(api);
    for (let n = 0; n < 4; n += 1) await publish(api, `old-${n}`);
    expect(await reader.readOn()).toHaveLength(4);
    expect(await prepareFeed(posthorn.core.db)).toEqual({ epoch: 0, raised: false });
    await posthorn.sql(`update events set xid = ((xid::text::bigint + 1000000000)::text)::xid8`);
    const moved = new Reader(api);
    expect(await moved.readOn()).toEqual([]);
    expect(await prepareFeed(posthorn.core.db)).toEqual({ epoch: 1, raised: true });
    expect(await prepareFeed(posthorn.core.db)).toEqual({ epoch: 1, raised: false });
    expect(await moved.readOn()).toEqual(['old-0', 'old-1', 'old-2', 'old-3']);
    await publish(api, 'new');
    expect((await moved.readOn()).slice(4)).toEqual(['new']);
  });

  it('begins a new epoch where the cluster is another one, or on another timeline', async () => {
    const before = await prepareFeed(posthorn.core.db);
    await posthorn.sql(`update engine_state set value = '1/1' where name = 'event_cluster'`);
    expect(await prepareFeed(posthorn.core.db)).toEqual({ epoch: before.epoch + 1, raised: true });
  });
});
