import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeLetters } from '../support/letters.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

/** Fewer for a trial run. */
const count = Number(process.env['REPLAY_LOAD_ITEMS'] ?? 20_000);
const ratePerSecond = 100;

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;
beforeAll(async () => {
  posthorn = await startPosthorn();
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  await receiver.stop();
  await posthorn.stop();
});

describe(`a replay of ${count} letters`, () => {
  it('sends each once, with histories of a few thousand events at most', async () => {
    const { api, core } = posthorn;
    const { id: endpointId } = await api.createEndpoint(receiver.url, ['load.*']);
    const ids = await makeLetters(posthorn, endpointId, 'load.letter', count);
    expect(ids).toHaveLength(count);
    const { body } = await api.post('/v1/dead-letters/replay', {
      filter: { endpoint_id: endpointId },
      rate_per_second: ratePerSecond,
    });
    expect(body.progress.total).toBe(count);
    const startedAt = Date.now();
    const timeoutMs = 120_000 + count * 60;
    const done = await until(
      'all have succeeded',
      async () => {
        const replay = (await api.get(`/v1/replays/${body.id}`)).body;
        return replay.status === 'completed' && replay.outcomes.in_progress === 0 && replay;
      },
      timeoutMs,
    );
    expect(done.outcomes).toMatchObject({ succeeded: count, failed: 0, skipped: {} });
    expect(Date.now() - startedAt).toBeGreaterThan((count / ratePerSecond) * 1_000 - 2_000);
    const received = new Map<string, number>();
    for (const { deliveryId } of receiver.requests) received.set(deliveryId, (received.get(deliveryId) ?? 0) + 1);
    expect(received.size).toBe(count);
    expect([...received.values()].filter((times) => times !== 1)).toEqual([]);
    const { historyLength } = await core.temporal.client!.workflow.getHandle(`replay/${body.id}`).describe();
    expect(historyLength).toBeLessThan(3_000);
  });
});
