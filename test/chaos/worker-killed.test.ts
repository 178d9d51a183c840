import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createTestDatabase } from '../support/engines.js';
import { HeldAnswers } from '../support/held-answers.js';
import { type ApiClient, createNamespace, RecordingReceiver, testEnv, until } from '../support/posthorn.js';
import { Processes } from '../support/processes.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { workflowEnds } from '../support/workflows.js';

const processes = new Processes();
let client: Client;
let connection: Connection;
let env: (address?: string, extra?: Record<string, string>) => Record<string, string>;

beforeAll(async () => {
  const databaseUrl = await createTestDatabase(inject('postgresUrl'));
  const namespace = await createNamespace();
  env = (temporalAddress = inject('temporalAddress'), extra = {}) =>
    testEnv({ databaseUrl, temporalAddress, namespace, extra });
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection, namespace });
});
afterAll(async () => {
  await processes.killAll();
  await connection.close();
});

/** One attempt in flight on its own endpoint: `request` resolves once it has arrived. */
async function inFlight(api: ApiClient, type: string, lane: 'local' | 'ordinary') {
  const held = new HeldAnswers();
  const receiver = await RecordingReceiver.start((request, reply, count) => {
    // The second attempt is never a local one.
    if (lane === 'ordinary' && count === 1) reply.writeHead(500).end();
    else held.answer(request, reply, count);
  });
  await api.createEndpoint(receiver.url, [type], { retry_waits_ms: [100, 500, 500], timeout_ms: 30_000 });
  const id = (await api.publish(type)).deliveries[0]!.id;
  await held.arrived();
  return { id, receiver, held, before: lane === 'local' ? 1 : 2 };
}

describe('a worker that is killed', () => {
  it('leaves nothing behind: within seconds another one goes on, and repeats only what was not recorded', async () => {
    const { api } = await processes.api(env());
    const { api: hurried } = await processes.api(env(undefined, { POSTHORN_TEMPORAL_WORKFLOW_TASK_TIMEOUT: '5s' }));
    const proxy = await TcpProxy.start(inject('temporalAddress'));
    const first = await processes.worker(env(proxy.address));

    const recordedLocal = await inFlight(api, 'recorded.local', 'local');
    const recordedOrdinary = await inFlight(api, 'recorded.ordinary', 'ordinary');
    const local = await inFlight(api, 'killed.local', 'local');
    const quicker = await inFlight(hurried, 'killed.hurried', 'local');
    const ordinary = await inFlight(api, 'killed.ordinary', 'ordinary');

    // Recorded in Postgres, but Temporal never hears of it.
    proxy.hold();
    for (const { held } of [recordedLocal, recordedOrdinary]) held.release(200);
    for (const { id } of [recordedLocal, recordedOrdinary])
      await until('the answer is recorded', async () => (await api.delivery(id)).status === 'succeeded');
    await first.kill9();
    const killedAt = Date.now();
    await proxy.stop();

    for (const { receiver } of [local, quicker, ordinary])
      receiver.answer = (_, reply) => void reply.writeHead(200).end();
    await processes.worker(env());

    const wentOn: Record<string, number> = {};
    for (const [name, { id, receiver, before }] of Object.entries({ quicker, local, ordinary })) {
      await until(`${name} goes on`, async () => (await api.delivery(id)).status === 'succeeded', 30_000);
      await workflowEnds(client, id, 'COMPLETED');
      expect(receiver.of(id), name).toHaveLength(before + 1);
      wentOn[name] = receiver.of(id).at(-1)!.at - killedAt;
    }
    console.info('milliseconds from the kill to the next request:', wentOn);
    expect(wentOn['quicker']).toBeLessThan(10_000);
    expect(wentOn['local']).toBeLessThan(15_000);
    expect(wentOn['ordinary']).toBeLessThan(16_000);

    // A first attempt that was never answered is simply made again; the ordinary one is known to have been sent.
    expect((await api.attempts(local.id)).map(({ number, status_code }) => [number, status_code])).toEqual([[1, 200]]);
    expect((await api.attempts(ordinary.id)).map(({ number, error_code }) => [number, error_code])).toEqual([
      [1, 'http_status'],
      [2, 'outcome_unknown'],
      [3, null],
    ]);

    for (const { id, receiver, before } of [recordedLocal, recordedOrdinary]) {
      await workflowEnds(client, id, 'COMPLETED', 30_000);
      expect(receiver.of(id)).toHaveLength(before);
      expect(await api.attempts(id)).toHaveLength(before);
    }
    for (const { receiver } of [recordedLocal, recordedOrdinary, local, quicker, ordinary]) await receiver.stop();
  });
});
