import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { RecordingReceiver, until } from '../support/posthorn.js';
import { ProductionProcesses, withTemporalClient } from '../support/production-processes.js';

let processes: ProductionProcesses;
let receiver: RecordingReceiver;

beforeAll(async () => {
  // Two APIs and two workers start at the same moment on an empty database.
  processes = await ProductionProcesses.start({ extra: { POSTHORN_DELIVERY_RETRY_WAITS: '1s,2s' } });
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  expect(await processes.stop(), 'every process stops cleanly').toEqual([0, 0, 0, 0]);
  await receiver.stop();
});

const api = (index: number) => processes.apis[index % 2]!.client;

describe('two APIs and two workers on a production server', () => {
  it('run in a namespace that keeps closed workflows for 31 days', async () => {
    const { namespace } = inject('productionServer');
    await withTemporalClient(namespace, async (client) => {
      const { config } = await client.workflowService.describeNamespace({ namespace });
      expect(Number(config?.workflowExecutionRetentionTtl?.seconds)).toBe(31 * 86_400);
    });
  });

  it('are healthy by the checks of their containers, and a worker that does not poll is not', () => {
    const port = new URL(api(0).baseUrl).port;
    expect(processes.healthcheck('api', { POSTHORN_HTTP_PORT: port })).toMatchObject({ code: 0 });
    expect(processes.healthcheck('worker')).toMatchObject({ code: 0 });
    expect(processes.healthcheck('worker', { TEMPORAL_NAMESPACE: 'temporal-system' })).toMatchObject({ code: 1 });
    expect(processes.healthcheck('worker', { TEMPORAL_ADDRESS: '127.0.0.1:1' })).toMatchObject({
      code: 0,
      text: expect.stringContaining('Temporal is away'),
    });
  });

  it('deliver 200 events to every endpoint that wants them, once each', async () => {
    const wanted = { all: ['bulk.*'], even: ['bulk.even'], odd: ['bulk.odd'], none: ['bulk.other'] };
    const ids: Record<string, string> = {};
    for (const [name, events] of Object.entries(wanted)) {
      ids[name] = (await api(0).createEndpoint(`${receiver.url}/${name}`, events)).id;
    }
    const published = await inParallel(8, 200, (index) =>
      api(index).publish(index % 2 ? 'bulk.odd' : 'bulk.even', { index }),
    );
    const deliveries = published.flatMap((event) => event.deliveries);
    expect(deliveries).toHaveLength(400);
    for (const { id } of deliveries) {
      expect(await api(1).delivery(id, '30s')).toMatchObject({ status: 'succeeded' });
      // The first attempt, and its outcome; with its error where there was one.
      expect(await api(0).attempts(id)).toMatchObject([{ number: 1, round: 1, status_code: 200, error_code: null }]);
      expect(receiver.of(id)).toHaveLength(1);
    }
    for (const [path, count] of Object.entries({ '/all': 200, '/even': 100, '/odd': 100, '/none': 0 })) {
      expect(receiver.requests.filter((request) => request.path === path)).toHaveLength(count);
    }

    // Each endpoint's deliveries can be found in Temporal's own tools.
    await withTemporalClient(processes.namespace, async (client) => {
      const query = `PosthornEndpointId = "${ids['even']}"`;
      const found = await until('visibility knows all of them', async () => {
        const workflows = await fromAsync(client.workflow.list({ query }));
        return workflows.length >= 100 && workflows;
      });
      expect(new Set(found.map((workflow) => workflow.workflowId))).toEqual(
        new Set(deliveries.filter((delivery) => delivery.endpoint_id === ids['even']).map(({ id }) => id)),
      );
      const event = published[0]!;
      const query2 = `PosthornEventId = "${event.id}" AND PosthornEventType = "bulk.even" AND PosthornTenantId = "default"`;
      const ofEvent = await fromAsync(client.workflow.list({ query: query2 }));
      expect(ofEvent.map((workflow) => workflow.workflowId).sort()).toEqual(
        event.deliveries.map(({ id }) => id).sort(),
      );
    });
  });

  it('retry on the schedule until the endpoint is well', async () => {
    const failing = await RecordingReceiver.start(
      (_, reply, count) => void reply.writeHead(count < 3 ? 500 : 200).end(),
    );
    try {
      await api(0).createEndpoint(failing.url, ['retry.me']);
      const { deliveries } = await api(1).publish('retry.me');
      const { id } = deliveries[0]!;
      const delivery = await until('it is delivered', async () => {
        const found = await api(0).delivery(id, '10s');
        return found.status === 'succeeded' && found;
      });
      expect(delivery).toMatchObject({ attempt_count: 3, reason: 'delivered' });
      const attempts = await api(1).attempts(id);
      expect(attempts.map(({ number, status_code }) => [number, status_code])).toEqual([
        [1, 500],
        [2, 500],
        [3, 200],
      ]);
      const waits = failing.requests.slice(1).map((request, index) => request.at - failing.requests[index]!.at);
      // 1 s and 2 s, each ±20 %, and what the machine needs.
      expect(waits[0]).toBeGreaterThan(750);
      expect(waits[1]).toBeGreaterThan(1_550);
      expect(Math.max(...waits)).toBeLessThan(10_000);
    } finally {
      await failing.stop();
    }
  });

  it('keep what can not be delivered, and deliver it when somebody asks', async () => {
    let well = false;
    const down = await RecordingReceiver.start((_, reply) => void reply.writeHead(well ? 200 : 503).end());
    try {
      const endpoint = await api(0).createEndpoint(down.url, ['down.now']);
      const { deliveries } = await api(0).publish('down.now');
      const { id } = deliveries[0]!;
      await until('it is a dead letter', async () => (await api(1).delivery(id, '10s')).status === 'failed', 40_000);
      expect(await api(1).delivery(id)).toMatchObject({ reason: 'attempts_exhausted', attempt_count: 3, round: 1 });
      const failed = await api(0).get(`/v1/webhook-deliveries?status=failed&endpoint_id=${endpoint.id}`);
      expect(failed.body.data.map((delivery: { id: string }) => delivery.id)).toEqual([id]);

      well = true;
      expect(await api(1).post(`/v1/webhook-deliveries/${id}/redeliver`, { reason: 'it is back' })).toMatchObject({
        status: 202,
      });
      await until('it is delivered', async () => (await api(0).delivery(id, '10s')).status === 'succeeded');
      expect(await api(0).delivery(id)).toMatchObject({ round: 2, attempt_count: 4 });
    } finally {
      await down.stop();
    }
  });

  it('stop trying when a delivery is cancelled', async () => {
    const down = await RecordingReceiver.start((_, reply) => void reply.writeHead(500).end());
    try {
      await api(0).createEndpoint(down.url, ['cancel.me']);
      const { deliveries } = await api(0).publish('cancel.me');
      const { id } = deliveries[0]!;
      await until('it has failed once', async () => (await api(0).attempts(id)).length > 0);
      expect((await api(1).post(`/v1/webhook-deliveries/${id}/cancel`)).status).toBe(202);
      await until('the workflow has ended', () =>
        withTemporalClient(processes.namespace, async (client) => {
          const { status } = await client.workflow.getHandle(id).describe();
          return status.name !== 'RUNNING' && status.name;
        }),
      );
      expect(await api(0).delivery(id)).toMatchObject({ status: 'cancelled', reason: 'cancelled_by_request' });
    } finally {
      await down.stop();
    }
  });

  it('accept the same event once, whichever API is asked', async () => {
    await api(0).createEndpoint(`${receiver.url}/once`, ['once.only']);
    const body = JSON.stringify({ type: 'once.only', data: { n: 1 } });
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        api(index).post('/v1/events', body, { 'idempotency-key': 'production-once' }),
      ),
    );
    // A request that meets its twin in the middle may be told to come again.
    expect(answers.every(({ status }) => status === 202 || status === 409)).toBe(true);
    const accepted = answers.filter(({ status }) => status === 202);
    expect(new Set(accepted.map((answer) => answer.text)).size).toBe(1);
    const again = await api(1).post('/v1/events', body, { 'idempotency-key': 'production-once' });
    expect(again).toMatchObject({ status: 202, text: accepted[0]!.text });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const other = await api(0).post(
      '/v1/events',
      { type: 'once.only', data: 2 },
      { 'idempotency-key': 'production-once' },
    );
    expect(other).toMatchObject({ status: 409, body: { code: 'idempotency_conflict' } });
    const [{ id }] = again.body.deliveries;
    await until('it is delivered', async () => (await api(0).delivery(id, '10s')).status === 'succeeded');
    expect(receiver.requests.filter((request) => request.path === '/once')).toHaveLength(1);
  });
});

/** Calls in order of their numbers, so many at once. */
async function inParallel<T>(width: number, count: number, call: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) results[index] = await call(index);
  };
  await Promise.all(Array.from({ length: width }, work));
  return results;
}

async function fromAsync<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
