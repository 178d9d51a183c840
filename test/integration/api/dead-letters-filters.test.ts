import * as fc from 'fast-check';
import { encodeTime } from 'ulid';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import type { ApiClient } from '../../support/posthorn.js';
import { statusesOfReason } from '../../../src/domain/reason-statuses.js';
import type { DeliveryReason } from '../../../src/domain/closed-lists.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

interface Item {
  readonly tenant: string;
  readonly id: string;
  readonly letter: string;
  readonly status: string;
  readonly reason: DeliveryReason;
  readonly resolution: string;
  readonly endpoint_id: string;
  readonly event_id: string;
  readonly type: string;
  readonly http_status: number | null;
  readonly createdMs: number;
}

const minute = 60_000;
const begin = Date.parse('2026-01-30T22:00:00.250Z');
const pick = <T>(list: readonly T[], n: number): T => list[n % list.length]!;
const types = ['t.a', 't.b', 't.c'];
const codes = [null, 200, 204, 404, 500, 503];
const reasons = Object.keys(statusesOfReason) as DeliveryReason[];
const resolutions = ['open', 'replayed', 'expired', 'discarded'];

/** Rows in which everything meets everything, and many have the same time; ids are off by as much as clocks may be. */
async function seed(tenant: string, count: number): Promise<Item[]> {
  const api = await posthorn.tenant(tenant);
  const endpoints: string[] = [];
  for (let n = 0; n < 3; n += 1) endpoints.push((await api.createEndpoint('http://127.0.0.1:9/', ['none'])).id);
  const items = Array.from({ length: count }, (_, n): Item => {
    const createdMs = begin + Math.floor(n / 4) * 7 * minute;
    const skew = ((n * 37) % 19) - 9;
    const id = `whd_${encodeTime(createdMs + skew * minute, 10)}${tenant === 'here' ? 'A' : 'B'}${String(n).padStart(15, '0')}`;
    const reason = pick(reasons, n * 7 + Math.floor(n / 20));
    return {
      tenant,
      id,
      letter: `${id}.1`,
      status: pick(statusesOfReason[reason], n),
      reason,
      resolution: pick(resolutions, Math.floor(n / 3)),
      endpoint_id: pick(endpoints, n + Math.floor(n / 5)),
      event_id: `event-${Math.floor(n / 5)}`,
      type: pick(types, Math.floor(n / 5)),
      http_status: pick(codes, n * 5 + Math.floor(n / 7)),
      createdMs,
    };
  });
  for (const item of items) {
    const at = new Date(item.createdMs);
    await posthorn.sql(
      `insert into events (tenant_id, id, type, data, created_at, body_hash) values ($1, $2, $3, '1', $4, '') on conflict do nothing`,
      [tenant, item.event_id, item.type, at],
    );
    await posthorn.sql(
      `insert into deliveries (id, tenant_id, event_id, endpoint_id, type, status, reason, last_status_code, created_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [item.id, tenant, item.event_id, item.endpoint_id, item.type, item.status, item.reason, item.http_status, at],
    );
    await posthorn.sql(
      `insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, last_status_code,
                                 created_at, expires_at, resolved_at, resolution)
       values ($1, 1, $2, $3, $4, $5, $6, 3, $7, $8, now() + interval '30 days', $9, $10)`,
      [
        item.id,
        tenant,
        item.event_id,
        item.endpoint_id,
        item.type,
        item.reason,
        item.http_status,
        at,
        item.resolution === 'open' ? null : at,
        item.resolution === 'open' ? null : item.resolution,
      ],
    );
  }
  return items;
}

interface Filter {
  readonly [name: string]: string | number | undefined;
}

/** The plainest reading of the filters. */
function chosen(items: readonly Item[], filter: Filter): Item[] {
  const { created_after: after, created_before: before, ...equal } = filter;
  return items.filter(
    (item) =>
      Object.entries(equal).every(([name, value]) => value === undefined || item[name as keyof Item] === value) &&
      (after === undefined || item.createdMs >= Date.parse(String(after))) &&
      (before === undefined || item.createdMs < Date.parse(String(before))),
  );
}

/** The same time, as people write it: with another zone, or with a + that nobody escaped. */
function written(time: string, how: number): string {
  if (how === 0) return encodeURIComponent(time);
  const local = new Date(Date.parse(time) + 5.5 * 3_600_000).toISOString().replace('Z', '+05:30');
  return how === 1 ? encodeURIComponent(local) : local;
}

function queryOf(filter: Filter, how: number): string {
  return Object.entries(filter)
    .filter(([, value]) => value !== undefined)
    .map(
      ([name, value]) =>
        `${name}=${name.startsWith('created') ? written(String(value), how) : encodeURIComponent(String(value))}`,
    )
    .join('&');
}

async function pages(api: ApiClient, path: string, step: 'next_cursor' | 'prev_cursor', from: string | null = null) {
  const found: { ids: string[]; next: string | null; prev: string | null }[] = [];
  for (let cursor = from, first = true; first || cursor !== null; first = false) {
    const answer = await api.get(cursor === null ? path : `${path}&cursor=${cursor}`);
    expect(answer.status, answer.text).toBe(200);
    const { data, next_cursor: next, prev_cursor: prev } = answer.body;
    found.push({ ids: data.map((row: { id: string }) => row.id), next, prev });
    cursor = step === 'next_cursor' ? next : prev;
  }
  return found;
}

const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined, freq: 2 });

describe('filters', () => {
  let api: ApiClient;
  let here: Item[];
  let elsewhere: Item[];

  beforeAll(async () => {
    here = await seed('here', 160);
    elsewhere = await seed('elsewhere', 40);
    api = await posthorn.tenant('here');
  });

  const time = fc.integer({ min: -2, max: 42 }).map((n) => new Date(begin + n * 7 * minute).toISOString());
  const filters = fc.record({
    endpoint_id: maybe(fc.integer({ min: 0, max: 3 })),
    event_id: maybe(fc.integer({ min: 0, max: 33 }).map((n) => `event-${n}`)),
    type: maybe(fc.constantFrom(...types, 't.none')),
    reason: maybe(fc.constantFrom(...reasons)),
    http_status: maybe(fc.constantFrom(200, 204, 404, 500, 503, 599)),
    created_after: maybe(time),
    created_before: maybe(time),
  });
  const each = ['endpoint_id', 'event_id', 'type', 'reason', 'http_status', 'created_after', 'created_before'] as const;

  async function expectSame(list: string, filter: Filter, expected: string[], limit: number, how: number) {
    const path = `${list}?limit=${limit}&${queryOf(filter, how)}`;
    const there = await pages(api, path, 'next_cursor');
    expect(there.flatMap(({ ids }) => ids)).toEqual(expected);
    expect(there.every(({ ids }, index) => ids.length === limit || index === there.length - 1)).toBe(true);
    if (there.length < 2) return;
    const back = await pages(api, path, 'prev_cursor', there.at(-1)!.prev);
    expect(back.toReversed().map(({ ids }) => ids)).toEqual(there.slice(0, -1).map(({ ids }) => ids));
  }

  const lists = {
    '/v1/webhook-deliveries': (items: Item[]) =>
      items
        .map(({ id }) => id)
        .sort()
        .toReversed(),
    '/v1/dead-letters': (items: Item[]) => items.map(({ letter }) => letter).toReversed(),
  };

  /** Endpoints by number: 3 is the other tenant's. */
  const withEndpoint = ({ endpoint_id: n, ...rest }: Filter): Filter => {
    const own = [...new Set(here.map((item) => item.endpoint_id))];
    return { ...rest, endpoint_id: n === undefined ? undefined : (own[Number(n)] ?? elsewhere[0]!.endpoint_id) };
  };

  it.each(['/v1/webhook-deliveries', '/v1/dead-letters'] as const)(
    'of %s choose what a plain reading of them would, alone and together, page by page, there and back',
    async (list) => {
      const state = list === '/v1/dead-letters' ? 'resolution' : 'status';
      const states =
        list === '/v1/dead-letters' ? resolutions : ['pending', 'retrying', 'succeeded', 'failed', 'held', 'cancelled'];
      const limits = fc.constantFrom(1, 2, 7, 50);
      await fc.assert(
        fc.asyncProperty(
          filters,
          maybe(fc.constantFrom(...states)),
          fc.subarray([...each]),
          limits,
          fc.integer({ min: 0, max: 2 }),
          async (all, stateWanted, kept, limit, how) => {
            const some = Object.fromEntries(kept.map((name) => [name, all[name]]));
            const filter = withEndpoint({ ...some, ...(kept.length % 2 ? {} : { [state]: stateWanted }) });
            await expectSame(
              list,
              filter,
              lists[list](chosen(here, filter)),
              limit < 7 && kept.length < 2 ? 50 : limit,
              how,
            );
          },
        ),
        { numRuns: 120 },
      );
    },
    120_000,
  );

  it.each(['/v1/webhook-deliveries', '/v1/dead-letters'] as const)('of %s choose something each', async (list) => {
    const item = here.find(({ http_status, reason }) => http_status === 503 && reason === 'attempts_exhausted')!;
    const alone: Filter[] = [
      { endpoint_id: item.endpoint_id },
      { event_id: item.event_id },
      { type: item.type },
      { reason: item.reason },
      { http_status: item.http_status! },
      { created_after: new Date(item.createdMs).toISOString() },
      { created_before: new Date(item.createdMs + 1).toISOString() },
      list === '/v1/dead-letters' ? { resolution: item.resolution } : { status: item.status },
    ];
    for (const filter of [...alone, Object.assign({}, ...alone) as Filter]) {
      const expected = lists[list](chosen(here, filter));
      expect(expected).toContain(list === '/v1/dead-letters' ? item.letter : item.id);
      await expectSame(list, filter, expected, 50, 0);
    }
  });

  it('take every time back that we print', async () => {
    for (const list of ['/v1/webhook-deliveries', '/v1/dead-letters']) {
      const { data } = (await api.get(`${list}?limit=5`)).body;
      for (const { created_at: at } of data) {
        const { data: from } = (await api.get(`${list}?limit=250&created_after=${at}`)).body;
        expect(from.map((row: { created_at: string }) => row.created_at)).toContain(at);
        const { data: until } = (await api.get(`${list}?limit=250&created_before=${at}`)).body;
        expect(until.map((row: { created_at: string }) => row.created_at)).not.toContain(at);
        expect(from.length + until.length).toBe(160);
      }
    }
  });

  it.each([
    ['status', '/v1/webhook-deliveries?status=lost'],
    ['status', '/v1/webhook-deliveries?status=failed&status=held'],
    ['status', '/v1/dead-letters?status=failed'],
    ['resolution', '/v1/dead-letters?resolution=closed'],
    ['reason', '/v1/webhook-deliveries?reason=because'],
    ['reason', '/v1/dead-letters?reason='],
    ['http_status', '/v1/webhook-deliveries?http_status=abc'],
    ['http_status', '/v1/webhook-deliveries?http_status=99'],
    ['http_status', '/v1/dead-letters?http_status=5e2'],
    ['endpoint_id', '/v1/dead-letters?endpoint_id=%00'],
    ['event_id', '/v1/dead-letters?event_id=a%20b'],
    ['type', '/v1/dead-letters?type=a..b'],
    ['created_after', '/v1/webhook-deliveries?created_after=yesterday'],
    ['created_after', '/v1/webhook-deliveries?created_after=2026-01-31'],
    ['created_after', '/v1/webhook-deliveries?created_after=2026-01-31T12:00:00'],
    ['created_after', '/v1/webhook-deliveries?created_after=2026-02-30T12:00:00Z'],
    ['created_before', '/v1/webhook-deliveries?created_before=1767182400'],
    ['created_before', '/v1/dead-letters?created_before=0000-01-01T00:00:00Z'],
    ['created_before', '/v1/dead-letters?created_before=2026-01-31%2012:00:00Z'],
    ['limit', '/v1/dead-letters?limit=0'],
    ['limit', '/v1/dead-letters?limit=251'],
    ['limit', '/v1/webhook-deliveries?limit=-1'],
    ['limit', '/v1/webhook-deliveries?limit=1e2'],
    ['limit', '/v1/webhook-deliveries?limit=99999999999999999999'],
    ['limit', '/v1/webhook-deliveries?limit='],
    ['cursor', `/v1/dead-letters?cursor=${Buffer.from('next:abc').toString('base64url')}`],
    ['cursor', `/v1/webhook-deliveries?cursor=${Buffer.from('next:whd_1').toString('base64url')}`],
  ])('that are wrong are told: %s in %s', async (field, path) => {
    const answer = await api.get(path);
    expect(answer).toMatchObject({ status: 422, body: { field } });
    expect(answer.body.detail).toContain(field);
  });

  it('bear times at the ends of what there is', async () => {
    for (const list of ['/v1/webhook-deliveries', '/v1/dead-letters']) {
      expect((await api.get(`${list}?created_after=0001-01-01T00:00:00Z&limit=250`)).body.data).toHaveLength(160);
      expect((await api.get(`${list}?created_before=9999-12-31T23:59:59.999Z&limit=250`)).body.data).toHaveLength(160);
      expect((await api.get(`${list}?created_after=9999-12-31T23:59:59.999Z`)).body.data).toEqual([]);
      expect((await api.get(`${list}?created_before=0001-01-01T00:00:00Z`)).body.data).toEqual([]);
    }
  });

  it('of a forged cursor with a position that is none are refused, not an error of ours', async () => {
    const { next_cursor: cursor } = (await api.get('/v1/dead-letters?limit=1')).body;
    const scope = Buffer.from(cursor, 'base64url').toString().split(':')[2];
    const forged = Buffer.from(`next:whd_x:${scope}`).toString('base64url');
    expect(await api.get(`/v1/dead-letters?limit=1&cursor=${forged}`)).toMatchObject({
      status: 422,
      body: { field: 'cursor' },
    });
  });
});
