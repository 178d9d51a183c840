import { afterAll, beforeAll, expect, it } from 'vitest';
import { Stripe } from 'stripe';
import { Webhook } from 'standardwebhooks';
import {
  type ReceivedRequest,
  RecordingReceiver,
  type RunningPosthorn,
  startPosthorn,
  until,
} from '../support/posthorn.js';

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

type Verify = (request: ReceivedRequest, secret: string) => unknown;
const verifiers: Record<string, Verify> = {
  default: ({ body, headers }, secret) =>
    new Stripe('sk_test_x').webhooks.constructEvent(body, headers['webhook-signature']!, secret),
  cloudevents: ({ body, headers }, secret) => new Webhook(secret).verify(body, headers as Record<string, string>),
};

it.each(Object.entries(verifiers))(
  'a receiver of the %s profile that knows the old secret, then the new one, rejects nothing through a rotation under load',
  async (profile, verify) => {
    const { api } = posthorn;
    const path = `/${profile}`;
    const { id, secret } = await api.createEndpoint(`${receiver.url}${path}`, [`${profile}.rotated`], { profile });
    let known = secret;
    let rejected = 0;
    let accepted = 0;
    receiver.answer = (request, reply) => {
      try {
        verify(request, known);
        accepted += 1;
        reply.writeHead(200).end();
      } catch {
        rejected += 1;
        reply.writeHead(401).end();
      }
    };
    const stop = new AbortController();
    let published = 0;
    const load = (async () => {
      while (!stop.signal.aborted) {
        // As fast as it goes, with some in flight all the time.
        await until('fewer are on their way', async () => published - accepted < 20);
        await api.publish(`${profile}.rotated`, { n: (published += 1) });
      }
    })();
    const more = (count: number): Promise<unknown> => {
      const goal = accepted + count;
      return until(`${count} more have arrived`, async () => accepted >= goal, 60_000);
    };
    await more(10);
    const rotated = await api.post(`/v1/webhooks/subscriptions/${id}/secrets`);
    expect(rotated.status).toBe(201);
    await more(10);
    known = (rotated.body as { secret: string }).secret;
    await more(10);
    const { data } = (await api.get(`/v1/webhooks/subscriptions/${id}/secrets`)).body as {
      data: { id: string; current: boolean }[];
    };
    const old = data.find(({ current }) => !current)!;
    expect((await api.delete(`/v1/webhooks/subscriptions/${id}/secrets/${old.id}`)).status).toBe(204);
    await more(10);
    stop.abort();
    await load;
    await until('all have arrived', async () => accepted >= published, 60_000);
    expect({ rejected, accepted }).toEqual({ rejected: 0, accepted: published });
  },
);
