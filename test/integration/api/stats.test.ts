import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import type { ApiClient } from '../../support/posthorn.js';

let posthorn: RunningApi;
let tenants = 0;

beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

const newTenant = (): Promise<ApiClient> => posthorn.tenant(`stats-${++tenants}`);

interface Past {
  readonly at: string;
  readonly ms: number;
  readonly status: number | null;
  readonly error?: string;
}

let attemptsMade = 0;

/** One delivery to a new endpoint, with attempts as they would have been recorded. */
async function endpointWith(api: ApiClient, past: readonly Past[], event = 'thing.happened'): Promise<string> {
  const { id } = await api.createEndpoint('http://127.0.0.1:9/', [event]);
  const published = await api.publish(event);
  const delivery = published.deliveries.find(({ endpoint_id }) => endpoint_id === id)!;
  for (const [n, { at, ms, status, error }] of past.entries()) {
    await posthorn.sql(
      `insert into attempts (id, delivery_id, endpoint_id, number, round, run_id, sequence, started_at, duration_ms, status_code, error_code, outcome)
       values ($1, $2, $3, $4, 1, 'run', $4, $5, $6, $7, $8, $9)`,
      [
        `att_${++attemptsMade}`,
        delivery.id,
        id,
        n + 1,
        at,
        ms,
        status,
        error ?? null,
        error === undefined ? 'delivered' : 'failed',
      ],
    );
  }
  return id;
}

const path = (id: string, query: string): string => `/v1/webhooks/subscriptions/${id}/stats?${query}`;

describe('stats of an endpoint', () => {
  it('count attempts, outcomes and latencies, in total and by bucket, empty ones included', async () => {
    const api = await newTenant();
    const id = await endpointWith(api, [
      { at: '2026-03-01T09:59:59.999Z', ms: 9_000, status: 200 },
      { at: '2026-03-01T10:00:00.000Z', ms: 10, status: 200 },
      { at: '2026-03-01T10:59:59.999Z', ms: 20, status: 204 },
      { at: '2026-03-01T12:10:00.000Z', ms: 30, status: 503, error: 'http_status' },
      { at: '2026-03-01T12:20:00.000Z', ms: 400, status: null, error: 'timeout_response' },
      { at: '2026-03-01T13:00:00.000Z', ms: 9_000, status: 200 },
    ]);
    const { status, body } = await api.get(path(id, 'from=2026-03-01T10:00:00Z&to=2026-03-01T13:00:00Z&by=hour'));
    expect(status).toBe(200);
    expect(body).toMatchObject({
      endpoint_id: id,
      from: '2026-03-01T10:00:00.000Z',
      to: '2026-03-01T13:00:00.000Z',
      by: 'hour',
    });
    expect(body.total).toEqual({
      attempts: 4,
      delivered: 2,
      failed: 2,
      success_rate: 0.5,
      latency_ms: { p50: 20, p95: 400, p99: 400 },
      error_codes: { http_status: 1, timeout_response: 1 },
      status_classes: { '2xx': 2, '5xx': 1 },
    });
    expect(
      body.data.map((bucket: { starts_at: string; attempts: number; delivered: number }) => [
        bucket.starts_at,
        bucket.attempts,
        bucket.delivered,
      ]),
    ).toEqual([
      ['2026-03-01T10:00:00.000Z', 2, 2],
      ['2026-03-01T11:00:00.000Z', 0, 0],
      ['2026-03-01T12:00:00.000Z', 2, 0],
    ]);
    expect(body.data[1]).toMatchObject({
      success_rate: null,
      latency_ms: { p50: null, p95: null, p99: null },
      error_codes: {},
    });
    expect(body.data[2]).toMatchObject({
      error_codes: { http_status: 1, timeout_response: 1 },
      status_classes: { '5xx': 1 },
    });
  });

  it('go by minute and by day too, and cut nothing at an offset', async () => {
    const api = await newTenant();
    const id = await endpointWith(api, [
      { at: '2026-03-01T23:59:30.000Z', ms: 5, status: 200 },
      { at: '2026-03-02T00:00:30.000Z', ms: 5, status: 200 },
    ]);
    const minutes = await api.get(path(id, 'from=2026-03-02T00:59:00+01:00&to=2026-03-02T01:01:00%2B01:00&by=minute'));
    expect(minutes.body.data.map((b: { attempts: number }) => b.attempts)).toEqual([1, 1]);
    const days = await api.get(path(id, 'from=2026-03-01T12:00:00Z&to=2026-03-03T00:00:00Z&by=day'));
    expect(
      days.body.data.map((b: { starts_at: string; attempts: number }) => [b.starts_at.slice(0, 10), b.attempts]),
    ).toEqual([
      ['2026-03-01', 1],
      ['2026-03-02', 1],
    ]);
    const again = await api.get(path(id, `from=${days.body.from}&to=${days.body.to}&by=day`));
    expect(again.body).toEqual(days.body);
  });

  it('say what waits, and since when', async () => {
    const api = await newTenant();
    const id = await endpointWith(api, []);
    await api.publish('thing.happened');
    await api.publish('thing.happened');
    const deliveries = await posthorn.sql<{ id: string; created_at: Date }>(
      'select id, created_at from deliveries where endpoint_id = $1 order by id',
      [id],
    );
    await posthorn.sql(`update deliveries set status = 'retrying' where id = $1`, [deliveries[0]!.id]);
    await posthorn.sql(`update deliveries set status = 'held' where id = $1`, [deliveries[1]!.id]);
    const { body } = await api.get(path(id, ''));
    expect(body.backlog).toEqual({
      pending: 1,
      retrying: 1,
      held: 1,
      oldest_at: deliveries[0]!.created_at.toISOString(),
    });
    await posthorn.sql(`update deliveries set status = 'succeeded' where endpoint_id = $1`, [id]);
    expect((await api.get(path(id, ''))).body.backlog).toEqual({ pending: 0, retrying: 0, held: 0, oldest_at: null });
  });

  it('are those of the tenant alone', async () => {
    const api = await newTenant();
    const at = '2026-03-01T10:00:00Z';
    const mine = await endpointWith(api, [{ at, ms: 1, status: 200 }], 'a.happened');
    await endpointWith(api, [{ at, ms: 3, status: 500, error: 'http_status' }], 'b.happened');
    const stranger = await newTenant();
    await endpointWith(stranger, [{ at, ms: 9, status: 200 }]);
    expect((await stranger.get(path(mine, ''))).status).toBe(404);
    const total = await api.get('/v1/stats?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z');
    expect(total.body.endpoint_id).toBeNull();
    expect(total.body.total).toMatchObject({
      attempts: 2,
      delivered: 1,
      success_rate: 0.5,
      latency_ms: { p50: 1, p99: 3 },
    });
    expect(total.body.backlog).toMatchObject({ pending: 2, held: 0 });
  });

  it.each([
    ['from=2026-03-01T10:00:00Z&to=2026-03-01T10:00:00Z', 'from'],
    ['from=2026-03-01T00:00:00Z&to=2026-03-01T06:00:01Z&by=minute', 'from'],
    ['from=2026-03-01T00:00:00Z&to=2026-03-08T00:00:01Z&by=hour', 'from'],
    ['from=2026-01-01T00:00:00Z&to=2026-12-01T00:00:00Z&by=day', 'from'],
    ['from=yesterday', 'from'],
    ['to=2026-02-30T00:00:00Z', 'to'],
    ['by=week', 'by'],
    ['window=1h', 'window'],
  ])('refuse %s', async (query, field) => {
    const answer = await posthorn.api.get(`/v1/stats?${query}`);
    expect([answer.status, answer.body.field]).toEqual([422, field]);
  });

  it('take the largest window of each size', async () => {
    for (const query of [
      'from=2026-03-01T00:00:00Z&to=2026-03-01T06:00:00Z&by=minute',
      'from=2026-03-01T00:00:00Z&to=2026-03-08T00:00:00Z&by=hour',
      'from=2026-03-01T00:00:00Z&to=2026-06-01T00:00:00Z&by=day',
      'by=minute',
    ])
      expect([query, (await posthorn.api.get(`/v1/stats?${query}`)).status]).toEqual([query, 200]);
  });
});
