import { Client } from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createTestDatabase } from '../support/engines.js';
import { type ApiClient, createNamespace, RecordingReceiver, testEnv } from '../support/posthorn.js';
import { everythingSucceeds, Processes } from '../support/processes.js';

const processes = new Processes();
let env: (extra?: Record<string, string>) => Record<string, string>;
let receiver: RecordingReceiver;
let databaseUrl: string;

beforeAll(async () => {
  databaseUrl = await createTestDatabase(inject('postgresUrl'));
  const namespace = await createNamespace();
  const express = { POSTHORN_DELIVERY_FIRST_ATTEMPT: 'express' };
  env = () => testEnv({ databaseUrl, temporalAddress: inject('temporalAddress'), namespace, extra: express });
  // Long enough that a kill finds requests on their way.
  receiver = await RecordingReceiver.start((_, reply) => void setTimeout(() => reply.writeHead(200).end(), 20));
});
afterAll(async () => {
  await processes.killAll();
  await receiver.stop();
});

/** Publishes one after the other until the process is gone; answers the deliveries that were promised with a 202. */
async function publishUntilGone(api: ApiClient, onPromised: (count: number) => void): Promise<string[]> {
  const promised: string[] = [];
  for (;;) {
    const answer = await api.post('/v1/events', { type: 'express.killed', data: {} }).catch(() => null);
    if (answer?.status !== 202) return promised;
    promised.push(answer.body.deliveries[0].id);
    onPromised(promised.length);
  }
}

/** What a receiver has been sent, and no database knows of yet: only this may come again. */
async function receivedAndNotRecorded(): Promise<{ id: string; receivedAt: number }[]> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const open = await client.query<{ id: string }>(`select id from deliveries where status <> 'succeeded'`);
    const ids = new Set(open.rows.map(({ id }) => id));
    return receiver.requests
      .filter(({ deliveryId }) => ids.has(deliveryId))
      .map(({ deliveryId, at }) => ({ id: deliveryId, receivedAt: at }));
  } finally {
    await client.end();
  }
}

it('three kills of the process that sends lose nothing, repeat little, and what was in flight goes on within seconds', async () => {
  await processes.worker(env());
  const promised: string[] = [];
  const unrecorded: string[] = [];
  let endpointId: string | null = null;
  for (const killAt of [60, 45, 80]) {
    const sender = await processes.api(env());
    endpointId ??= (await sender.api.createEndpoint(receiver.url, ['express.killed'])).id;
    promised.push(...(await publishUntilGone(sender.api, (count) => count === killAt && sender.signal('SIGKILL'))));
    expect(promised.length).toBeGreaterThan(30);
    const killedAt = Date.now();
    await sender.kill9();
    for (const { id, receivedAt } of await receivedAndNotRecorded()) {
      // An earlier kill's may still wait for the sweeper.
      if (unrecorded.includes(id)) continue;
      expect(killedAt - receivedAt).toBeLessThan(2_000);
      unrecorded.push(id);
    }
  }
  const last = await processes.api(env());
  const since = Date.now();
  const deliveries = await everythingSucceeds(last.api, `endpoint_id=${endpointId}`, promised.length);
  const goneOnMs = Date.now() - since;
  expect(deliveries.map(({ id }) => id)).toEqual(expect.arrayContaining(promised));
  const twice = deliveries.filter(({ id }) => receiver.of(id).length > 1);
  expect(deliveries.filter(({ id }) => receiver.of(id).length === 0)).toEqual([]);
  // How many of them there are at a kill is the machine's and the receiver's doing; that no other comes again is ours.
  expect(twice.map(({ id }) => id).filter((id) => !unrecorded.includes(id))).toEqual([]);
  expect(goneOnMs).toBeLessThan(15_000);
  console.info(
    `${deliveries.length} deliveries, ${twice.length} received twice, all there ${goneOnMs} ms after the last start`,
  );
});
