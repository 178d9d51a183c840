import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import '../support/provided.js';
import { type Seeded, seedLists } from '../../bench/lists-seed.js';
import { createDataSource, type DataSource, migrate } from '../../src/database/data-source.js';
import type { DeliveryFilter } from '../../src/database/delivery-list.js';
import { DeliveryStore } from '../../src/database/delivery-store.js';
import { type LetterFilter, LetterStore } from '../../src/database/letter-store.js';
import { decodeCursor, type Page, type PageRequest } from '../../src/database/page.js';
import { createTestDatabase } from '../support/engines.js';
import { explaining, type Reading } from './explaining.js';

const deliveries = 1_000_000;
const limit = 50;
/** Reading 51 rows, each on a page of its own, with all that an index needs to find them. */
const fewPages = 150;
/** The same where rows are looked at that don't match all the filters. */
const somePages = 2_500;

let db: DataSource;
let seeded: Seeded;

beforeAll(async () => {
  const url = await createTestDatabase(inject('postgresUrl'));
  db = createDataSource({ url, poolSize: 2 });
  await db.initialize();
  await migrate(db);
  seeded = await seedLists(url, deliveries, () => undefined);
}, 600_000);
afterAll(() => db?.destroy());

type Lister<F> = (on: DataSource, tenantId: string, filter: F, page: PageRequest) => Promise<Page<unknown>>;

const listDeliveries: Lister<DeliveryFilter> = (on, ...request) => new DeliveryStore(on).list(...request);
const listLetters: Lister<LetterFilter> = (on, ...request) => new LetterStore(on).list(...request);

async function reading<F>(list: Lister<F>, tenantId: string, filter: F, cursor: string | null = null) {
  const explained = explaining(db);
  const request = { limit, cursor: cursor === null ? null : decodeCursor(cursor) };
  const page = await list(explained.db, tenantId, filter, request);
  return { page, reading: explained.readings[0] ?? { indexes: [], scanned: [], pages: 0 } };
}

function expectQuick(how: Reading, index: RegExp, mostPages: number): void {
  const main = how.indexes
    .filter((name) => !name.startsWith('endpoints'))
    // Of a tenant that has nearly all rows, the primary key is in the same order.
    .map((name) => name.replace('deliveries_pkey', 'deliveries_in_order'));
  expect(
    how.scanned.filter((table) => table !== 'endpoints'),
    'tables that are read as a whole',
  ).toEqual([]);
  expect(main.length, 'indexes').toBeGreaterThan(0);
  for (const name of main) expect(name).toMatch(index);
  expect(how.pages).toBeLessThanOrEqual(mostPages);
}

const day = 86_400_000;
const at = (share: number): Date =>
  new Date(seeded.from.getTime() + share * (seeded.to.getTime() - seeded.from.getTime()));

interface Case<F> {
  readonly name: string;
  readonly filter: () => F;
  readonly index: RegExp;
  readonly pages?: number;
  /** Rows of a first page; by default it is full. */
  readonly rows?: (count: number) => boolean;
}

const some = (count: number): boolean => count > 0;
const none = (count: number): boolean => count === 0;

const deliveryCases: Case<DeliveryFilter>[] = [
  { name: 'no filter', filter: () => ({}), index: /^deliveries_in_order$/ },
  { name: 'status', filter: () => ({ status: 'failed' }), index: /^deliveries_by_status$/ },
  { name: 'status of most', filter: () => ({ status: 'succeeded' }), index: /^deliveries_(by_status|in_order)$/ },
  { name: 'reason', filter: () => ({ reason: 'attempts_exhausted' }), index: /^deliveries_by_(status|reason)$/ },
  { name: 'a rare reason', filter: () => ({ reason: 'endpoint_gone' }), index: /^deliveries_by_reason$/, rows: some },
  {
    name: 'a reason of nobody',
    filter: () => ({ reason: 'verification_dropped' }),
    index: /^deliveries_by_reason$/,
    rows: none,
  },
  {
    name: 'a reason of several statuses',
    filter: () => ({ reason: 'retry_after' }),
    index: /^deliveries_by_reason$/,
  },
  { name: 'reason of most', filter: () => ({ reason: 'delivered' }), index: /^deliveries_(by_status|in_order)$/ },
  {
    name: 'endpoint',
    filter: () => ({ endpointId: seeded.busyEndpoint }),
    index: /^deliveries_(by_endpoint|by_status|held|in_order)$/,
    pages: 700,
  },
  {
    name: 'endpoint, the healthy one',
    filter: () => ({ endpointId: seeded.healthyEndpoint }),
    index: /^deliveries_(by_endpoint|held|in_order)$/,
    pages: 600,
  },
  {
    name: 'event',
    filter: () => ({ eventId: seeded.eventId }),
    index: /^deliveries_by_event$/,
    rows: (count) => count === 2,
  },
  { name: 'an event of nobody', filter: () => ({ eventId: 'nobody' }), index: /^deliveries_by_event$/, rows: none },
  {
    name: 'type',
    filter: () => ({ type: 'type3.happened' }),
    index: /^deliveries_(by_type|in_order)$/,
    pages: somePages,
  },
  { name: 'a rare type', filter: () => ({ type: 'rare.happened' }), index: /^deliveries_by_type$/, rows: some },
  { name: 'a type of long ago', filter: () => ({ type: 'old.retired' }), index: /^deliveries_by_type$/ },
  { name: 'a type of nobody', filter: () => ({ type: 'no.such' }), index: /^deliveries_by_type$/, rows: none },
  { name: 'http_status', filter: () => ({ httpStatus: 503 }), index: /^deliveries_by_http_status$/ },
  { name: 'a rare http_status', filter: () => ({ httpStatus: 418 }), index: /^deliveries_by_http_status$/, rows: some },
  {
    name: 'an http_status of nobody',
    filter: () => ({ httpStatus: 599 }),
    index: /^deliveries_by_http_status$/,
    rows: none,
  },
  { name: 'http_status of most', filter: () => ({ httpStatus: 200 }), index: /^deliveries_in_order$/ },
  { name: 'http_status 204', filter: () => ({ httpStatus: 204 }), index: /^deliveries_by_http_status$/ },
  {
    name: 'created_before',
    filter: () => ({ createdBefore: at(0.3) }),
    index: /^deliveries_in_order$/,
    pages: somePages,
  },
  { name: 'created_after', filter: () => ({ createdAfter: at(0.5) }), index: /^deliveries_in_order$/ },
  {
    name: 'a minute in the middle',
    filter: () => ({ createdAfter: at(0.5), createdBefore: new Date(at(0.5).getTime() + 60_000) }),
    index: /^deliveries_in_order$/,
    pages: somePages,
    rows: some,
  },
  {
    name: 'status and endpoint',
    filter: () => ({ status: 'failed', endpointId: seeded.busyEndpoint }),
    index: /^deliveries_by_(endpoint|status)$/,
    pages: somePages,
  },
  {
    name: 'status and the healthy endpoint',
    filter: () => ({ status: 'failed', endpointId: seeded.healthyEndpoint }),
    index: /^deliveries_by_endpoint$/,
    rows: some,
  },
  {
    name: 'reason and the healthy endpoint',
    filter: () => ({ reason: 'attempts_exhausted', endpointId: seeded.healthyEndpoint }),
    index: /^deliveries_by_endpoint$/,
    rows: some,
  },
  {
    name: 'status and type',
    filter: () => ({ status: 'failed', type: 'type3.happened' }),
    index: /^deliveries_by_(status|type)$/,
    pages: 6_000,
  },
  {
    name: 'status and a rare type',
    filter: () => ({ status: 'failed', type: 'rare.happened' }),
    index: /^deliveries_by_type$/,
    rows: () => true,
  },
  {
    name: 'endpoint and type',
    filter: () => ({ endpointId: seeded.busyEndpoint, type: 'type3.happened' }),
    index: /^deliveries_(by_type|in_order)$/,
    pages: somePages,
  },
  {
    name: 'the healthy endpoint and type',
    filter: () => ({ endpointId: seeded.healthyEndpoint, type: 'type3.happened' }),
    index: /^deliveries_(by_type|by_endpoint|in_order)$/,
    pages: 10_000,
  },
  {
    // All of the tenant's are looked at, since hardly any is that endpoint's.
    name: 'the healthy endpoint and http_status',
    filter: () => ({ endpointId: seeded.healthyEndpoint, httpStatus: 503 }),
    index: /^deliveries_(by_http_status|by_endpoint)$/,
    rows: () => true,
    pages: 30_000,
  },
  {
    name: 'endpoint and a rare type',
    filter: () => ({ endpointId: seeded.busyEndpoint, type: 'rare.happened' }),
    index: /^deliveries_(by_type|held)$/,
    rows: some,
    pages: 400,
  },
  {
    name: 'endpoint and http_status',
    filter: () => ({ endpointId: seeded.busyEndpoint, httpStatus: 418 }),
    index: /^deliveries_(by_http_status|held)$/,
    rows: () => true,
    pages: 5_000,
  },
  {
    name: 'endpoint and event',
    filter: () => ({ endpointId: seeded.busyEndpoint, eventId: seeded.eventId }),
    index: /^deliveries_by_event$/,
    rows: some,
  },
  {
    name: 'status and event',
    filter: () => ({ status: 'succeeded', eventId: seeded.eventId }),
    index: /^deliveries_by_event$/,
    rows: () => true,
  },
  {
    name: 'status and a day long ago',
    filter: () => ({ status: 'failed', createdAfter: at(0.2), createdBefore: new Date(at(0.2).getTime() + day) }),
    index: /^deliveries_by_status$/,
    pages: somePages,
  },
  {
    name: 'endpoint and a day long ago',
    filter: () => ({
      endpointId: seeded.healthyEndpoint,
      createdAfter: at(0.2),
      createdBefore: new Date(at(0.2).getTime() + day),
    }),
    index: /^deliveries_(by_endpoint|held|in_order)$/,
    pages: somePages,
  },
  {
    name: 'reason and a status that it never has',
    filter: () => ({ status: 'succeeded', reason: 'endpoint_gone' }),
    index: /never/,
    rows: none,
  },
];

const letterCases: Case<LetterFilter>[] = [
  { name: 'no filter', filter: () => ({}), index: /^dead_letters_in_order$/ },
  { name: 'open', filter: () => ({ resolution: 'open' }), index: /^dead_letters_(open_in_order|in_order)$/ },
  {
    name: 'replayed',
    filter: () => ({ resolution: 'replayed' }),
    index: /^dead_letters_(by_resolution|in_order)$/,
    pages: 400,
  },
  { name: 'discarded', filter: () => ({ resolution: 'discarded' }), index: /^dead_letters_by_resolution$/, rows: none },
  {
    name: 'endpoint',
    filter: () => ({ endpointId: seeded.busyEndpoint }),
    index: /^dead_letters_(by_endpoint|in_order)$/,
    pages: 400,
  },
  {
    name: 'the healthy endpoint',
    filter: () => ({ endpointId: seeded.healthyEndpoint }),
    index: /^dead_letters_(by_endpoint|open)$/,
    rows: some,
  },
  {
    name: 'endpoint and open',
    filter: () => ({ endpointId: seeded.healthyEndpoint, resolution: 'open' }),
    index: /^dead_letters_(by_endpoint|open)$/,
    rows: some,
  },
  { name: 'event', filter: () => ({ eventId: seeded.eventId }), index: /^dead_letters_by_event$/, rows: () => true },
  {
    name: 'type',
    filter: () => ({ type: 'type3.happened' }),
    index: /^dead_letters_(by_type|in_order)$/,
    pages: somePages,
  },
  { name: 'a type of long ago', filter: () => ({ type: 'old.retired' }), index: /^dead_letters_by_type$/ },
  { name: 'a type of nobody', filter: () => ({ type: 'no.such' }), index: /^dead_letters_by_type$/, rows: none },
  { name: 'reason', filter: () => ({ reason: 'attempts_exhausted' }), index: /^dead_letters_(by_reason|in_order)$/ },
  { name: 'a rare reason', filter: () => ({ reason: 'endpoint_gone' }), index: /^dead_letters_by_reason$/, rows: some },
  {
    name: 'http_status',
    filter: () => ({ httpStatus: 503 }),
    index: /^dead_letters_(by_http_status|in_order)$/,
    pages: 400,
  },
  {
    name: 'a rare http_status',
    filter: () => ({ httpStatus: 418 }),
    index: /^dead_letters_by_http_status$/,
    rows: some,
  },
  { name: 'created_before', filter: () => ({ createdBefore: at(0.3) }), index: /^dead_letters_(in_order|by_time)$/ },
  {
    name: 'a day long ago',
    filter: () => ({ createdAfter: at(0.2), createdBefore: new Date(at(0.2).getTime() + day) }),
    index: /^dead_letters_(in_order|by_time)$/,
    pages: 400,
  },
  {
    name: 'open, of an endpoint, on a day long ago',
    filter: () => ({
      resolution: 'open',
      endpointId: seeded.busyEndpoint,
      createdAfter: at(0.2),
      createdBefore: new Date(at(0.2).getTime() + day),
    }),
    index: /^dead_letters_(in_order|by_time|by_endpoint|open|open_in_order)$/,
    pages: 600,
  },
];

const full = (count: number): boolean => count === limit;

describe.each([
  ['deliveries', deliveryCases, listDeliveries],
  ['dead letters', letterCases, listLetters],
] as [string, Case<object>[], Lister<object>][])('a list of %s, of a million deliveries', (_, cases, list) => {
  it.each(cases)(
    'by $name reads one index, and few pages',
    async ({ filter, index, pages = fewPages, rows = full }) => {
      const { page, reading: how } = await reading(list, 'big', filter());
      expect(page.rows.length).toSatisfy(rows);
      if (index.source === 'never') expect(how.pages).toBe(0);
      else expectQuick(how, index, pages);
    },
  );

  it.each(cases)('by $name of a small tenant is quick, too', async ({ filter, index }) => {
    const { reading: how } = await reading(list, 'small', filter());
    // With few rows it may be cheaper to look through all of the tenant's.
    const small = new RegExp(
      `${index.source}|_in_order$|_by_status$|_by_type$|_by_event$|_by_endpoint$|_by_reason$|_by_time$`,
    );
    if (index.source !== 'never') expectQuick(how, small, somePages);
  });

  it.each(cases)('by $name goes on quickly, there and back', async ({ filter, index, pages = fewPages }) => {
    const first = await reading(list, 'big', filter());
    if (first.page.nextCursor === null) return;
    const second = await reading(list, 'big', filter(), first.page.nextCursor);
    expectQuick(second.reading, index, pages);
    expect(second.page.prevCursor).not.toBeNull();
    const back = await reading(list, 'big', filter(), second.page.prevCursor);
    expectQuick(back.reading, index, pages);
    expect(back.page.rows).toEqual(first.page.rows);
  });
});

describe('a tenant that names another one’s endpoint', () => {
  it('has none of its deliveries looked at', async () => {
    const { page, reading: how } = await reading(listDeliveries, 'small', { endpointId: seeded.busyEndpoint });
    expect(page.rows).toEqual([]);
    expect(how.pages).toBeLessThan(20);
  });
});

describe('the attempts of a delivery', () => {
  it('are found by their delivery', async () => {
    const [row] = await db.query<{ id: string }[]>(`select delivery_id as id from attempts order by id desc limit 1`);
    const explained = explaining(db);
    const store = new DeliveryStore(explained.db);
    expect((await store.attempts('big', row!.id, { limit, cursor: null }))?.rows.length).toBe(3);
    await store.history('big', row!.id);
    for (const how of explained.readings) {
      expect(how.scanned).toEqual([]);
      expect(how.pages).toBeLessThan(20);
    }
  });
});
