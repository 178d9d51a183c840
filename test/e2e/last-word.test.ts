import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;
beforeAll(async () => {
  posthorn = await startPosthorn();
  receiver = await RecordingReceiver.start((_, reply) => void reply.writeHead(500).end());
});
afterAll(async () => {
  await receiver.stop();
  await posthorn.stop();
});

describe('redeliver, cancel and redeliver in quick succession', () => {
  it('leave the last word to the last one: its round is attempted, and not cancelled by the call before', async () => {
    const { api } = posthorn;
    // An endpoint each: several failures in a row at one would hold the others.
    const types = Array.from({ length: 8 }, (_, n) => `last.word-${n}`);
    for (const type of types) await api.createEndpoint(receiver.url, [type], { retry_waits_ms: [60_000, 60_000] });
    const published = await Promise.all(types.map((type) => api.publish(type)));
    const ids = published.map(({ deliveries }) => deliveries[0]!.id);
    const call = (id: string, action: string) => api.post(`/v1/webhook-deliveries/${id}/${action}`);
    for (const id of ids) {
      await until('it waits', async () => (await api.delivery(id)).status === 'retrying');
      await call(id, 'cancel');
      await call(id, 'redeliver');
      await call(id, 'cancel');
      const last = await call(id, 'redeliver');
      expect(last.status).toBe(202);
      const { round } = last.body;
      await until(`round ${round} of ${id} is attempted`, async () =>
        (await api.attempts(id)).some((attempt) => attempt.round === round),
      );
      expect(await api.delivery(id)).toMatchObject({ status: 'retrying', round });
    }
  });
});
