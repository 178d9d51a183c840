import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createTestDatabase, makeTestDataDir, startTestDevServer } from '../support/engines.js';
import { HeldAnswers } from '../support/held-answers.js';
import { type Answerer, type ApiClient, RecordingReceiver, testEnv, until } from '../support/posthorn.js';
import { everythingSucceeds, Processes } from '../support/processes.js';
import { workflowEnds } from '../support/workflows.js';

const outageMs = 30_000;
const namespace = 'default';
const processes = new Processes();
const dataDir = makeTestDataDir();
const answers = new Map<string, Answerer>();
let temporal: Awaited<ReturnType<typeof startTestDevServer>>;
let receiver: RecordingReceiver;
let env: Record<string, string>;

beforeAll(async () => {
  const databaseUrl = await createTestDatabase(inject('postgresUrl'));
  temporal = await startTestDevServer({ dataDir, namespace });
  env = testEnv({ databaseUrl, temporalAddress: temporal.address, namespace });
  receiver = await RecordingReceiver.start((request, reply, count) => {
    const answer = answers.get(request.path);
    if (answer) answer(request, reply, count);
    else reply.writeHead(200).end();
  });
});
afterAll(async () => {
  await processes.killAll();
  await temporal.stop({ graceMs: 0 });
  await receiver.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const says =
  (status: number): Answerer =>
  (_, reply) =>
    void reply.writeHead(status).end();

async function restartTemporal(): Promise<void> {
  temporal = await startTestDevServer({ dataDir, port: temporal.port, namespace });
}

/** Asks the server itself, over a connection of its own. */
async function withClient(ask: (client: Client) => Promise<void>): Promise<void> {
  const connection = await Connection.connect({ address: temporal.address });
  try {
    await ask(new Client({ connection, namespace }));
  } finally {
    await connection.close();
  }
}

/** An endpoint whose first delivery has failed and waits, for a time that no test sees the end of. */
async function waitingDelivery(api: ApiClient, name: string, retryWaitsMs = [600_000]): Promise<string> {
  answers.set(`/${name}`, says(500));
  await api.createEndpoint(`${receiver.url}/${name}`, [`waiting.${name}`], { retry_waits_ms: retryWaitsMs });
  const id = (await api.publish(`waiting.${name}`)).deliveries[0]!.id;
  await until(`${name} waits`, async () => (await api.delivery(id)).status === 'retrying');
  answers.set(`/${name}`, says(200));
  return id;
}

const isSucceeded = (api: ApiClient, id: string) => async () => (await api.delivery(id)).status === 'succeeded';

describe('Temporal is killed for half a minute', () => {
  it('and every event is accepted at once, and delivered once when it is back', async () => {
    const { api } = await processes.api(env);
    await processes.worker(env);
    const { id: endpointId } = await api.createEndpoint(`${receiver.url}/traffic`, ['traffic.sent'], {
      // A task that Temporal handed out just when it came up may be lost: its attempt is settled as unknown, and made again.
      retry_waits_ms: [1_000, 1_000],
    });
    const retried = await waitingDelivery(api, 'retried', [1_000, 1_000]);
    const redelivered = await waitingDelivery(api, 'redelivered');
    const cancelled = await waitingDelivery(api, 'cancelled');
    await api.createEndpoint(`${receiver.url}/closed`, ['closed.before']);
    const closed = (await api.publish('closed.before')).deliveries[0]!.id;
    await until('one is closed', isSucceeded(api, closed));
    const held = new HeldAnswers();
    answers.set('/inflight', held.answer);
    await api.createEndpoint(`${receiver.url}/inflight`, ['inflight.sent'], { timeout_ms: 30_000 });
    const inFlight = (await api.publish('inflight.sent')).deliveries[0]!.id;
    await held.arrived();
    answers.set('/inflight', says(200));

    const promised: string[] = [];
    const slowest = { ms: 0 };
    const publishTo = async (to: ApiClient, n: number) => {
      const startedAt = Date.now();
      const answer = await to.post('/v1/events', { type: 'traffic.sent', data: { n } });
      slowest.ms = Math.max(slowest.ms, Date.now() - startedAt);
      expect(answer.status).toBe(202);
      promised.push(answer.body.deliveries[0].id);
    };
    const publishing = { goesOn: true };
    const traffic = (async () => {
      for (let n = 0; publishing.goesOn; n += 1) {
        await publishTo(api, n);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    await until('traffic flows', async () => promised.length > 10);

    await temporal.stop({ graceMs: 0 });
    const diedAt = Date.now();
    held.release();
    await until('the answer in flight is recorded', isSucceeded(api, inFlight));

    const ready = await api.get('/readyz');
    expect(ready.status).toBe(200);
    expect(ready.body).toMatchObject({ status: 'ready', temporal: 'degraded' });
    const redelivery = await api.post(`/v1/webhook-deliveries/${redelivered}/redeliver`);
    expect(redelivery.body).toMatchObject({ round: 1, already_in_progress: false });
    const nextRound = await api.post(`/v1/webhook-deliveries/${closed}/redeliver`);
    expect(nextRound.body).toMatchObject({ round: 2, already_in_progress: false });
    const cancellation = await api.post(`/v1/webhook-deliveries/${cancelled}/cancel`);
    expect(cancellation.body).toMatchObject({ status: 'cancelled' });

    // Processes that boot now come up, too.
    const second = await processes.api(env);
    const secondWorker = processes.spawn('worker', env);
    for (let n = 0; n < 20; n += 1) await publishTo(second.api, n);

    await until('the outage is over', async () => Date.now() - diedAt >= outageMs, outageMs + 5_000);
    publishing.goesOn = false;
    await traffic;
    await restartTemporal();
    const backAt = Date.now();

    expect(await everythingSucceeds(api, `endpoint_id=${endpointId}`, promised.length)).toHaveLength(promised.length);
    const allAfterMs = Date.now() - backAt;
    for (const id of promised) expect(receiver.of(id), id).toHaveLength(1);
    await until('the retry went on', isSucceeded(api, retried), 40_000);
    expect(receiver.of(retried)).toHaveLength(2);
    await until('the redelivery had its effect', isSucceeded(api, redelivered), 40_000);
    expect(receiver.of(redelivered)).toHaveLength(2);
    await until('the next round had its effect', isSucceeded(api, closed), 40_000);
    expect(receiver.of(closed)).toHaveLength(2);
    expect(await api.delivery(cancelled)).toMatchObject({ status: 'cancelled', attempt_count: 1 });
    await withClient(async (client) => {
      await workflowEnds(client, inFlight, 'COMPLETED', 30_000);
      await workflowEnds(client, redelivered, 'COMPLETED', 30_000);
    });
    expect(receiver.of(inFlight)).toHaveLength(1);
    await secondWorker.says('workers poll');
    await until('it is ready again', async () => (await second.api.get('/readyz')).body.temporal === 'ok');

    expect(slowest.ms).toBeLessThan(1_000);
    console.info(
      `${promised.length} events; slowest publish ${slowest.ms} ms; all delivered ${allAfterMs} ms after Temporal was back`,
    );
  });

  it('and a store that is lost meanwhile loses no delivery', async () => {
    const { api } = await processes.api(env);
    const soon = await Promise.all(
      Array.from({ length: 5 }, (_, n) => waitingDelivery(api, `wiped-${n}`, [4_000, 4_000])),
    );
    await temporal.stop({ graceMs: 0 });
    for (const file of ['temporal.db', 'temporal.db-wal', 'temporal.db-shm'])
      rmSync(join(dataDir, file), { force: true });
    await api.createEndpoint(`${receiver.url}/after-wipe`, ['wiped.meanwhile']);
    const meanwhile = (await api.publish('wiped.meanwhile')).deliveries[0]!.id;
    await restartTemporal();
    const backAt = Date.now();
    for (const id of [...soon, meanwhile]) await until(`${id} is delivered`, isSucceeded(api, id), 40_000);
    for (const id of soon) expect(receiver.of(id)).toHaveLength(2);
    expect(receiver.of(meanwhile)).toHaveLength(1);
    console.info(`all delivered ${Date.now() - backAt} ms after an empty Temporal was up`);
  });
});
