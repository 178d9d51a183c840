import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { makeLetters } from '../support/letters.js';
import { Processes } from '../support/processes.js';
import {
  createNamespace,
  RecordingReceiver,
  type RunningPosthorn,
  startPosthorn,
  testEnv,
  until,
} from '../support/posthorn.js';

let receiver: RecordingReceiver;
beforeAll(async () => void (receiver = await RecordingReceiver.start()));
afterAll(() => receiver.stop());

const replayOf = async ({ api }: RunningPosthorn, id: string) => (await api.get(`/v1/replays/${id}`)).body;

async function replayLetters(posthorn: RunningPosthorn, endpointId: string, ratePerSecond: number): Promise<string> {
  const answer = await posthorn.api.post('/v1/dead-letters/replay', {
    filter: { endpoint_id: endpointId },
    rate_per_second: ratePerSecond,
  });
  expect(answer.status, answer.text).toBe(202);
  return answer.body.id as string;
}

async function expectEachOnce(posthorn: RunningPosthorn, ids: readonly string[]): Promise<void> {
  const counts = ids.map((id) => receiver.of(id).length);
  expect(counts.filter((count) => count !== 1)).toEqual([]);
  const rows = await posthorn.core.db.query<{ status: string; round: number; resolution: string }[]>(
    `select distinct d.status, d.round, l.resolution from deliveries d join dead_letters l on l.delivery_id = d.id where d.id = any($1)`,
    [ids],
  );
  expect(rows).toEqual([{ status: 'succeeded', round: 2, resolution: 'replayed' }]);
}

describe('a replay of 200 letters', () => {
  it('sends each exactly once, at its rate, although the worker is restarted in the middle', async () => {
    const posthorn = await startPosthorn({ worker: false });
    const processes = new Processes();
    const { databaseUrl, namespace } = posthorn;
    const env = testEnv({ databaseUrl, temporalAddress: inject('temporalAddress'), namespace });
    try {
      const first = await processes.worker(env);
      const { id: endpointId } = await posthorn.api.createEndpoint(`${receiver.url}/restart`, ['restart.*']);
      const ids = await makeLetters(posthorn, endpointId, 'restart.letter', 200);
      expect(ids).toHaveLength(200);
      const startedAt = Date.now();
      const id = await replayLetters(posthorn, endpointId, 20);
      await until('some are started', async () => (await replayOf(posthorn, id)).progress.started >= 20);
      first.signal('SIGTERM');
      expect(await first.exit()).toBe(0);
      expect((await replayOf(posthorn, id)).status).toBe('running');
      await processes.worker(env);
      const done = await until(
        'all have succeeded',
        async () => {
          const replay = await replayOf(posthorn, id);
          return replay.outcomes.succeeded === 200 && replay;
        },
        90_000,
      );
      expect(done).toMatchObject({
        status: 'completed',
        progress: { total: 200, started: 200, skipped: 0, waiting: 0 },
      });
      expect(Date.now() - startedAt).toBeGreaterThan(8_500);
      await expectEachOnce(posthorn, ids);
      // The row says so first: the activity that wrote it has yet to return.
      const historyLength = await until('the workflow has completed', async () => {
        const workflow = posthorn.core.temporal.client!.workflow.getHandle(`replay/${id}`);
        const { status, historyLength: length } = await workflow.describe();
        return status.name === 'COMPLETED' && length;
      });
      expect(historyLength).toBeLessThan(100);
    } finally {
      await processes.killAll();
      await posthorn.stop();
    }
  });

  it('goes on after Temporal has lost its store', async () => {
    const before = await startPosthorn();
    const { id: endpointId } = await before.api.createEndpoint(`${receiver.url}/wiped`, ['wiped.*']);
    const ids = await makeLetters(before, endpointId, 'wiped.letter', 40);
    const id = await replayLetters(before, endpointId, 4);
    await until('some have arrived', async () => receiver.requests.some(({ path }) => path === '/wiped'));
    await before.stop();
    const { databaseUrl } = before;
    const after = await startPosthorn({ databaseUrl, namespace: await createNamespace() });
    try {
      expect((await replayOf(after, id)).status).toBe('running');
      await until('all have succeeded', async () => (await replayOf(after, id)).outcomes.succeeded === 40, 90_000);
      await expectEachOnce(after, ids);
    } finally {
      await after.stop();
    }
  });
});
