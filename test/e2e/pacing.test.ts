import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;

beforeAll(async () => {
  posthorn = await startPosthorn({ extra: { POSTHORN_DELIVERY_RETRY_WAITS: '2s,2s,2s,2s,2s,2s,2s,2s' } });
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  await receiver.stop();
  await posthorn.stop();
});

const batch = async (type: string, count: number): Promise<string[]> => {
  const events = Array.from({ length: count }, (_, n) => ({ type, data: { n } }));
  const answer = await posthorn.api.post('/v1/events/batch', { events });
  expect(answer.body.accepted).toBe(count);
  return (answer.body.data as { event: { deliveries: { id: string }[] } }[]).map(
    ({ event }) => event.deliveries[0]!.id,
  );
};
const arrivedAt = (path: string): number[] => receiver.requests.filter((r) => r.path === path).map(({ at }) => at);

describe('a rate limit', () => {
  it('is kept over a storm, whose deliveries arrive in their order', async () => {
    await posthorn.api.createEndpoint(`${receiver.url}/limited`, ['limited.*'], { rate_limit_per_second: 10 });
    const ids = await batch('limited.storm', 100);
    await until('all have arrived', async () => arrivedAt('/limited').length >= 100, 60_000);
    const times = arrivedAt('/limited');
    expect(times).toHaveLength(100);
    const tookMs = times.at(-1)! - times[0]!;
    // 99 gaps of 100 ms, and as late as this machine is: npm run bench:isolation measures it.
    expect(tookMs).toBeGreaterThan(8_500);
    for (const [index, at] of times.entries()) {
      const within = times.filter((other) => other >= at && other < at + 1_000).length;
      expect(within, `from request ${index}`).toBeLessThanOrEqual(20);
    }
    for (const id of ids) expect(receiver.of(id)).toHaveLength(1);
  });
});

describe('an endpoint that was down', () => {
  it('gets what waited at a rising rate, each once, when it answers again', async () => {
    receiver.answer = (request, reply) => void reply.writeHead(request.path === '/down' ? 500 : 200).end();
    const { id: endpointId } = await posthorn.api.createEndpoint(`${receiver.url}/down`, ['down.*']);
    const ids = await batch('down.event', 40);
    const held = async (): Promise<number> =>
      (await posthorn.api.get(`/v1/webhook-deliveries?endpoint_id=${endpointId}&status=held&limit=250`)).body.data
        .length;
    await until('nearly all are held', async () => (await held()) >= 38, 60_000);
    const whileDown = arrivedAt('/down').length;
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    await until(
      'all are delivered',
      async () => {
        const { data } = (
          await posthorn.api.get(`/v1/webhook-deliveries?endpoint_id=${endpointId}&status=succeeded&limit=250`)
        ).body as { data: unknown[] };
        return data.length === 40;
      },
      90_000,
    );
    const after = arrivedAt('/down').slice(whileDown);
    expect(after).toHaveLength(40);
    expect(after.filter((at) => at < after[0]! + 1_000).length).toBeLessThanOrEqual(5);
    expect(new Set(ids.map((id) => receiver.of(id).length > 0))).toEqual(new Set([true]));
  });
});
