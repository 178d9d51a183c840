import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createTestDatabase } from '../support/engines.js';
import { type ApiClient, createNamespace, RecordingReceiver, testEnv } from '../support/posthorn.js';
import { everythingSucceeds, Processes } from '../support/processes.js';

const processes = new Processes();
let env: (extra?: Record<string, string>) => Record<string, string>;
let receiver: RecordingReceiver;

beforeAll(async () => {
  const databaseUrl = await createTestDatabase(inject('postgresUrl'));
  const namespace = await createNamespace();
  env = (extra = {}) => testEnv({ databaseUrl, temporalAddress: inject('temporalAddress'), namespace, extra });
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  await processes.killAll();
  await receiver.stop();
});

/** Publishes all at once; answers the deliveries that were promised with a 202. */
async function publishBurst(api: ApiClient, type: string, count: number, onSome: () => void = () => undefined) {
  const promised: string[] = [];
  await Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const answer = await api.post('/v1/events', { type, data: { n } }).catch(() => null);
      if (answer?.status !== 202) return;
      promised.push(...(answer.body.deliveries as { id: string }[]).map(({ id }) => id));
      if (promised.length === 20) onSome();
    }),
  );
  return promised;
}

async function allArriveOnce(api: ApiClient, endpointId: string, promised: readonly string[]): Promise<void> {
  const deliveries = await everythingSucceeds(api, `endpoint_id=${endpointId}`, promised.length);
  const known = deliveries.map(({ id }) => id);
  expect(known).toEqual(expect.arrayContaining([...promised]));
  for (const id of known) expect(receiver.of(id), id).toHaveLength(1);
}

describe('an API process that is killed', () => {
  it('between commit and start loses nothing: a worker’s sweeper starts what it left', async () => {
    const first = await processes.api(env());
    const { api } = first;
    const { id: endpointId } = await api.createEndpoint(receiver.url, ['burst.killed']);
    const { id: strandedId } = await api.createEndpoint(receiver.url, ['burst.stranded']);

    const promised = await publishBurst(api, 'burst.killed', 150, () => first.signal('SIGKILL'));
    expect(promised.length).toBeGreaterThanOrEqual(20);

    // This one can't reach Temporal at all: everything that it accepts is left to others.
    const cutOff = await processes.api(env({ TEMPORAL_ADDRESS: '127.0.0.1:1' }));
    const stranded = await publishBurst(cutOff.api, 'burst.stranded', 100);
    expect(stranded).toHaveLength(100);
    await cutOff.kill9();

    await processes.worker(env());
    const workerSince = Date.now();
    const second = await processes.api(env({ TEMPORAL_ADDRESS: '127.0.0.1:1' }));
    await allArriveOnce(second.api, endpointId, promised);
    await allArriveOnce(second.api, strandedId, stranded);
    console.info(
      `promised before the kill: ${promised.length}; all delivered ${Date.now() - workerSince} ms after the worker came`,
    );
  });
});
