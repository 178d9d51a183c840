import { encodeTime } from 'ulid';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createDataSource, type DataSource, migrate } from '../../src/database/data-source.js';
import { EventFeedStore, prepareFeed } from '../../src/database/event-feed-store.js';
import { ReconcileStore } from '../../src/database/reconcile-store.js';
import { RetentionStore } from '../../src/database/retention-store.js';
import { StatsStore } from '../../src/database/stats-store.js';
import { createTestDatabase } from '../support/engines.js';

const day = 86_400_000;
const size = 40_000;
let db: DataSource;

/** One connection, so that its statistics are the whole truth. */
beforeAll(async () => {
  const url = await createTestDatabase(inject('postgresUrl'));
  const migrated = await createDataSource({ url, poolSize: 2 }).initialize();
  await migrate(migrated);
  await migrated.destroy();
  db = await createDataSource({ url, poolSize: 1 }).initialize();
  await db.query(
    `insert into endpoints (id, tenant_id, url, events, event_likes, profile, status, created_at, updated_at, status_changed_at)
     select 'we_' || n, case when n = 1 then 'busy' else 'quiet' end, 'https://example.com/', '{*}', '{%}', 'default', 'active',
            now() - interval '200 days', now() - interval '200 days', now() - interval '200 days' from generate_series(1, 2) n`,
  );
  // 100 days, evenly; ids as if made then.
  await db.query(
    `insert into events (tenant_id, id, type, data, created_at, accepted_at, body_hash)
     select case when n % 100 = 0 then 'quiet' else 'busy' end, 'evt_' || n, 'a.b', '{}', at, at, '\\x00'
       from generate_series(1, ${size}) n, lateral (select now() - (${size} - n) * interval '100 days' / ${size}) t (at)`,
  );
  const rows = await db.query<{ id: string; at: Date }[]>('select id, accepted_at as at from events');
  await db.query(
    `insert into deliveries (id, tenant_id, event_id, endpoint_id, type, status, reason, attempt_count, created_at, updated_at)
     select n.id, v.tenant_id, v.id, case v.tenant_id when 'busy' then 'we_1' else 'we_2' end, 'a.b', 'succeeded', 'delivered', 1, v.accepted_at, v.accepted_at
       from unnest($1::text[], $2::text[]) n (id, event_id) join events v on v.id = n.event_id`,
    [
      rows.map(({ id, at }) => `whd_${encodeTime(at.getTime(), 10)}${id.slice(4).padStart(16, '0')}`),
      rows.map(({ id }) => id),
    ],
  );
  await db.query(
    `insert into attempts (id, delivery_id, endpoint_id, number, round, run_id, sequence, started_at, duration_ms, outcome)
     select 'att_' || substr(id, 5), id, endpoint_id, 1, 1, 'r', 1, created_at, 5, 'delivered' from deliveries`,
  );
  await db.query('vacuum (analyze)');
}, 120_000);
afterAll(() => db.destroy());

async function rowsReadByScans(): Promise<number> {
  await db.query('select pg_stat_force_next_flush()');
  await db.query('select pg_stat_clear_snapshot()');
  const [row] = await db.query<{ n: number }[]>(
    `select sum(seq_tup_read)::int as n from pg_stat_user_tables where relname in ('events', 'deliveries', 'attempts', 'dead_letters')`,
  );
  return row!.n;
}

/** Rows that were read by scans of whole tables while `work` was done. */
async function scanned(work: () => Promise<unknown>): Promise<number> {
  const before = await rowsReadByScans();
  await work();
  return (await rowsReadByScans()) - before;
}

const feed = () => new EventFeedStore(db);

const page = (changes: object = {}) =>
  feed().page(
    { tenantId: 'busy', cursor: null, limit: 50, type: null, endpointId: null, operational: false, ...changes },
    null,
  );

// At this size the planner would rather read small tables whole: with that forbidden, what has no index shows.
describe('an index serves every step of', () => {
  beforeAll(() => db.query('set enable_seqscan = off'));

  it('the feed: its beginning, its middle, its end, its types, and both ways', async () => {
    const middle = await feed().positionOf('busy', `evt_${size / 2 + 1}`);
    expect(
      await scanned(async () => {
        expect((await page()).rows).toHaveLength(50);
        expect((await page({ cursor: { direction: 'next', ...middle! } })).rows).toHaveLength(50);
        expect((await page({ cursor: { direction: 'prev', ...middle! } })).rows).toHaveLength(50);
        expect(
          (await page({ cursor: { direction: 'next', ...middle! }, type: 'a.b', endpointId: 'we_1' })).rows[0]!
            .delivery,
        ).not.toBeNull();
        await feed().get('busy', 'evt_1');
        await feed().lagMs();
        await prepareFeed(db);
      }),
    ).toBe(0);
  });

  it('stats of an endpoint', async () => {
    const window = {
      endpointId: 'we_1',
      tenantId: 'busy',
      from: new Date(Date.now() - day),
      to: new Date(),
      by: 'hour',
    } as const;
    expect(
      await scanned(async () => expect((await new StatsStore(db).of(window)).total.attempts).toBeGreaterThan(300)),
    ).toBe(0);
  });

  it('a run of reconcile', async () => {
    const store = new ReconcileStore(db, 30 * day);
    const from = new Date(Date.now() - day).toISOString();
    expect(
      await scanned(async () => {
        await store.repairWaiting();
        expect((await store.compareDeliveries({ from, after: null })).examined).toBeGreaterThan(300);
        expect((await store.compareEvents({ from, after: null })).examined).toBeGreaterThan(300);
      }),
    ).toBe(0);
  });

  it('the first batches of a purge', async () => {
    const store = new RetentionStore(
      db,
      { payloadsMs: 30 * day, attemptsMs: 50 * day, deliveriesMs: 50 * day, eventsMs: 50 * day, noticesMs: 50 * day },
      500,
    );
    for (const step of ['payloads', 'attempts', 'letters', 'deliveries', 'events'] as const)
      expect([step, await scanned(() => store.purge(step, null))]).toEqual([step, 0]);
    const [left] = await db.query<{ n: number }[]>(`select count(*)::int as n from events`);
    expect(left!.n).toBe(size - 500);
  });
});
