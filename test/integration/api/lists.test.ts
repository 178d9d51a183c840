import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import type { ApiClient } from '../../support/posthorn.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

const url = 'http://127.0.0.1:9/hook';
const deliveries = '/v1/webhook-deliveries';

interface Page {
  readonly data: { id: string; status: string; type: string; number: number }[];
  readonly next_cursor: string | null;
  readonly prev_cursor: string | null;
}

async function page(api: ApiClient, path: string, cursor: string | null = null): Promise<Page> {
  const glue = path.includes('?') ? '&' : '?';
  const answer = await api.get(cursor === null ? path : `${path}${glue}cursor=${encodeURIComponent(cursor)}`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body as Page;
}

/** All pages, as a client that follows next_cursor sees them; `between` runs after each page. */
async function follow(
  api: ApiClient,
  path: string,
  between: () => Promise<unknown> = async () => undefined,
): Promise<Page[]> {
  const pages = [await page(api, path)];
  for (let next = pages[0]!.next_cursor; next !== null; next = pages.at(-1)!.next_cursor) {
    await between();
    pages.push(await page(api, path, next));
  }
  return pages;
}

const ids = (pages: readonly Page[]): string[] => pages.flatMap(({ data }) => data.map(({ id }) => id));

const sorted = (some: readonly string[]): string[] => [...some].sort().toReversed();

/** A tenant of its own with one endpoint and this many deliveries, oldest first. */
async function tenantWith(name: string, count: number) {
  const api = await posthorn.tenant(name);
  const endpoint = await api.createEndpoint(url, ['*']);
  const events = Array.from({ length: count }, (_, n) => ({ type: `t.${n % 2 ? 'odd' : 'even'}`, data: n }));
  const answer = await api.post('/v1/events/batch', { events });
  const made: string[] = answer.body.data.map(
    (item: { event: { deliveries: { id: string }[] } }) => item.event.deliveries[0]!.id,
  );
  return { api, endpoint, made };
}

describe('deliveries', () => {
  it.each([1, 3, 7, 23, 24, 250])('come newest first, each once, in pages of %i', async (limit) => {
    const { api, made } = await tenantWith(`pages-${limit}`, 23);
    const pages = await follow(api, `${deliveries}?limit=${limit}`);
    // All have the same time: one transaction made them.
    expect(ids(pages)).toEqual([...made].sort().toReversed());
    expect(pages).toHaveLength(Math.ceil(23 / limit));
    expect(pages[0]!.prev_cursor).toBeNull();
    expect(pages.at(-1)!.next_cursor).toBeNull();
  });

  it('come back the same way', async () => {
    const { api } = await tenantWith('back', 23);
    const pages = await follow(api, `${deliveries}?limit=5`);
    const back = [pages.at(-1)!];
    for (let prev = back[0]!.prev_cursor; prev !== null; prev = back.at(-1)!.prev_cursor)
      back.push(await page(api, `${deliveries}?limit=5`, prev));
    expect(back.toReversed().map(({ data }) => data)).toEqual(pages.map(({ data }) => data));
    expect(back.at(-1)).toEqual(pages[0]);
  });

  it('are neither skipped nor repeated while others arrive', async () => {
    const { api, made } = await tenantWith('arriving', 20);
    const pages = await follow(api, `${deliveries}?limit=3`, () => api.publish('t.new'));
    expect(ids(pages)).toEqual([...made].sort().toReversed());
    // Those that arrived are found on the way back.
    const newer = await page(
      api,
      `${deliveries}?limit=50`,
      pages[0]!.next_cursor!.length > 0 ? pages[1]!.prev_cursor : null,
    );
    expect(newer.data.filter(({ type }) => type === 't.new')).toHaveLength(6);
  });

  it('of an empty list have no cursors', async () => {
    const api = await posthorn.tenant('empty');
    expect(await page(api, deliveries)).toEqual({ data: [], next_cursor: null, prev_cursor: null });
  });

  it('come 50 a page by default', async () => {
    const { api } = await tenantWith('default-limit', 51);
    const pages = await follow(api, deliveries);
    expect(pages.map(({ data }) => data.length)).toEqual([50, 1]);
  });

  it('are chosen by all filters together', async () => {
    const { api, endpoint, made } = await tenantWith('filters', 12);
    const other = await api.createEndpoint(url, ['t.even']);
    const event = await api.publish('t.even');
    const failed = made.filter((_, n) => n % 3 === 0);
    await posthorn.sql(`update deliveries set status = 'failed', reason = 'attempts_exhausted' where id = any($1)`, [
      failed,
    ]);
    const listed = async (query: string): Promise<string[]> => ids(await follow(api, `${deliveries}?limit=2&${query}`));

    expect(await listed('status=failed')).toEqual(sorted(failed));
    expect(await listed('type=t.odd')).toEqual(sorted(made.filter((_, n) => n % 2 === 1)));
    expect(await listed(`endpoint_id=${other.id}`)).toEqual(
      event.deliveries.filter((delivery) => delivery.endpoint_id === other.id).map(({ id }) => id),
    );
    expect(await listed(`event_id=${event.id}`)).toEqual(sorted(event.deliveries.map(({ id }) => id)));
    expect(await listed(`status=failed&type=t.odd&endpoint_id=${endpoint.id}`)).toEqual(
      sorted(failed.filter((id) => made.indexOf(id) % 2 === 1)),
    );
    expect(await listed(`status=failed&endpoint_id=${other.id}`)).toEqual([]);
    expect(await listed('status=held')).toEqual([]);
    expect(await listed('event_id=nobody&endpoint_id=we_nobody')).toEqual([]);
  });
});

describe('a cursor', () => {
  it('belongs to its list, its filters and its tenant', async () => {
    const { api } = await tenantWith('cursor', 5);
    const first = await page(api, `${deliveries}?limit=1&type=t.even`);
    const cursor = `cursor=${first.next_cursor}`;
    expect((await api.get(`${deliveries}?type=t.even&limit=2&${cursor}`)).status).toBe(200);
    const service = await posthorn.tenant(null);
    expect((await service.get(`${deliveries}?type=t.even&tenant_id=cursor&${cursor}`)).status).toBe(200);
    const refused = await Promise.all([
      api.get(`${deliveries}?${cursor}`),
      api.get(`${deliveries}?type=t.odd&${cursor}`),
      api.get(`${deliveries}?type=t.even&status=pending&${cursor}`),
      api.get(`/v1/webhooks/subscriptions?${cursor}`),
      api.get(`/v1/dead-letters?type=t.even&${cursor}`),
      api.get(`${deliveries}/${first.data[0]!.id}/attempts?${cursor}`),
      service.get(`${deliveries}?type=t.even&tenant_id=other&${cursor}`),
    ]);
    for (const answer of refused)
      expect(answer).toMatchObject({
        status: 422,
        body: { code: 'invalid_field', field: 'cursor', detail: expect.stringContaining('other filters') },
      });
  });

  it('leads back from a page whose rows have gone', async () => {
    const { api, made } = await tenantWith('gone', 4);
    const path = `${deliveries}?status=pending&limit=2`;
    const first = await page(api, path);
    await posthorn.sql(`update deliveries set status = 'succeeded' where id = any($1)`, [
      made.filter((id) => !ids([first]).includes(id)),
    ]);
    const empty = await page(api, path, first.next_cursor);
    expect(empty).toMatchObject({ data: [], next_cursor: null, prev_cursor: expect.any(String) });
    // The row that the cursor stands at is the one its reader saw last.
    expect(ids([await page(api, path, empty.prev_cursor)])).toEqual([ids([first])[0]]);
  });
});

describe('endpoints', () => {
  it('come newest first, without the deleted ones, also when their cursor’s row was deleted meanwhile', async () => {
    const api = await posthorn.tenant('endpoints');
    const made: string[] = [];
    for (let n = 0; n < 7; n++) made.push((await api.createEndpoint(url, ['a'])).id);
    await api.delete(`/v1/webhooks/subscriptions/${made[3]}`);
    const path = '/v1/webhooks/subscriptions?limit=2';
    const first = await page(api, path);
    expect(ids([first])).toEqual([made[6], made[5]]);
    await api.delete(`/v1/webhooks/subscriptions/${made[5]}`);
    const second = await page(api, path, first.next_cursor);
    expect(ids([second])).toEqual([made[4], made[2]]);
    const third = await page(api, path, second.next_cursor);
    expect(ids([third])).toEqual([made[1], made[0]]);
    expect(third.next_cursor).toBeNull();
    expect(ids([await page(api, path, second.prev_cursor)])).toEqual([made[6]]);
  });
});

describe('attempts', () => {
  it('come oldest first over all rounds, in pages', async () => {
    const api = await posthorn.tenant('attempts');
    await api.createEndpoint(url, ['*']);
    const { deliveries: made } = await api.publish('t.tried');
    const { id } = made[0]!;
    for (let number = 1; number <= 5; number++)
      await posthorn.sql(
        `insert into attempts (id, delivery_id, number, round, run_id, sequence, started_at, duration_ms, status_code, error_code,
                               error_message, response_headers, response_body, remote_address, outcome)
         values ($1, $2, $3, $4, 'run', $3, '2026-01-31T12:00:00.5Z', 12, 500, 'http_status', 'answered 500',
                 '[["content-type","text/plain"],["x-a","1"],["x-a","2"]]', $5, '203.0.113.7', 'failed')`,
        [`att_${number}`, id, number, number < 4 ? 1 : 2, Buffer.from([0x6e, 0x6f, 0xff, 0x00])],
      );
    const pages = await follow(api, `${deliveries}/${id}/attempts?limit=2`);
    expect(pages.map(({ data }) => data.map(({ number }) => number))).toEqual([[1, 2], [3, 4], [5]]);
    const back = await page(api, `${deliveries}/${id}/attempts?limit=2`, pages[2]!.prev_cursor);
    expect(back).toEqual(pages[1]);
    expect(await page(api, `${deliveries}/${id}/attempts?limit=2`, back.prev_cursor)).toEqual(pages[0]);
    // One that arrives meanwhile is found behind the last.
    expect(pages[0]!.prev_cursor).toBeNull();
    expect(pages[2]!.next_cursor).toBeNull();
    expect(pages[0]!.data[0]).toEqual({
      id: 'att_1',
      number: 1,
      round: 1,
      started_at: '2026-01-31T12:00:00.500Z',
      duration_ms: 12,
      status_code: 500,
      error_code: 'http_status',
      error_message: 'answered 500',
      response_headers: [
        ['content-type', 'text/plain'],
        ['x-a', '1'],
        ['x-a', '2'],
      ],
      response_body: 'no\ufffd\0',
      response_truncated: false,
      remote_address: '203.0.113.7',
      resent: false,
    });
  });
});
