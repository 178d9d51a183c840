import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Answerer, RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;

beforeAll(async () => {
  posthorn = await startPosthorn({
    extra: {
      POSTHORN_VERIFICATION_REQUIRED: 'on',
      POSTHORN_PUBLIC_HOST: 'posthorn.example.com',
      POSTHORN_PUBLIC_URL: 'https://posthorn.example.com',
    },
  });
  receiver = await RecordingReceiver.start();
});
beforeEach(() => {
  receiver.answer = (_, reply) => void reply.writeHead(200).end('ok');
});
afterAll(async () => {
  await receiver.stop();
  await posthorn.stop();
});

const subscriptions = '/v1/webhooks/subscriptions';

/** Answers the challenge as text; everything else with 200. */
const answersChallenges: Answerer = (request, reply) => {
  const message = JSON.parse(request.body.toString()) as { type?: string; data?: { challenge?: string } };
  reply.writeHead(200).end(message.type === 'webhook.verification' ? message.data?.challenge : 'ok');
};

// oxlint-disable-next-line typescript/no-explicit-any
async function endpoint(id: string): Promise<any> {
  return (await posthorn.api.get(`${subscriptions}/${id}`)).body;
}

const active = (id: string) => until('it is active', async () => (await endpoint(id)).status === 'active');
const tried = (id: string) =>
  until('it was asked', async () => {
    const found = await endpoint(id);
    return found.verification_state.tries > 0 && found;
  });

describe('a new endpoint', () => {
  it('gets nothing real before it has answered the challenge, and everything afterwards', async () => {
    const { api } = posthorn;
    receiver.answer = (_, reply) => void reply.writeHead(503).end();
    const { id } = await api.createEndpoint(`${receiver.url}/late`, ['late.*']);
    await tried(id);
    const published = await api.post('/v1/events', { type: 'late.one', data: { n: 1 } });
    expect(published.body.deliveries).toMatchObject([{ status: 'held' }]);
    const delivery = published.body.deliveries[0].id as string;
    expect(await api.delivery(delivery)).toMatchObject({ status: 'held', reason: 'endpoint_unverified' });

    receiver.answer = answersChallenges;
    expect((await api.post(`${subscriptions}/${id}/verify`)).status).toBe(202);
    await active(id);
    expect(await api.delivery(delivery, '10s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
    expect(receiver.of(delivery)).toHaveLength(1);
    expect((await endpoint(id)).verification_state).toMatchObject({ status: 'verified', verified_way: 'challenge' });
  });

  it('is asked again by itself', async () => {
    receiver.answer = (_, reply) => void reply.writeHead(200).end('something else');
    const { id } = await posthorn.api.createEndpoint(`${receiver.url}/again`, ['again.*']);
    const { verification_state: state } = await tried(id);
    expect(state).toMatchObject({ status: 'pending', tries: 1, last_status_code: 200, last_answer: 'something else' });
    expect(state.last_error).toMatch(/^not_confirmed/);
    receiver.answer = answersChallenges;
    await active(id);
  });

  it('may answer the challenge as JSON', async () => {
    receiver.answer = (request, reply) => {
      const { data } = JSON.parse(request.body.toString()) as { data: { challenge: string } };
      reply.writeHead(200).end(JSON.stringify({ ok: true, challenge: data.challenge }));
    };
    await active((await posthorn.api.createEndpoint(`${receiver.url}/json`, ['json.*'])).id);
  });

  it('is asked by a handshake in the cloudevents profile, and its rate is kept', async () => {
    receiver.answer = (request, reply) => {
      if (request.method !== 'OPTIONS') return void reply.writeHead(500).end();
      const allowed = { 'WebHook-Allowed-Origin': 'POSTHORN.example.com', 'WebHook-Allowed-Rate': '120' };
      reply.writeHead(204, allowed).end();
    };
    const { id } = await posthorn.api.createEndpoint(`${receiver.url}/shake`, ['shake.*'], { profile: 'cloudevents' });
    await active(id);
    const asked = receiver.requests.findLast(({ path }) => path === '/shake')!;
    expect(asked.headers).toMatchObject({
      'webhook-request-origin': 'posthorn.example.com',
      'webhook-request-rate': '6000',
    });
    expect(asked.headers['webhook-request-callback']).toContain(`${subscriptions}/${id}/consent/`);
    expect(await endpoint(id)).toMatchObject({ allowed_rate_per_minute: 120 });
  });

  it('passes by a ping where it knows no handshake', async () => {
    receiver.answer = (request, reply) => void reply.writeHead(request.method === 'OPTIONS' ? 405 : 200).end();
    const { id } = await posthorn.api.createEndpoint(`${receiver.url}/ping`, ['ping.*'], { profile: 'cloudevents' });
    await active(id);
    expect((await endpoint(id)).verification_state).toMatchObject({ verified_way: 'ping' });
  });

  it('is verified by a later consent', async () => {
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    const { api } = posthorn;
    const { id } = await api.createEndpoint(`${receiver.url}/later`, ['later.*'], { verification: 'handshake' });
    await tried(id);
    expect((await endpoint(id)).status).toBe('pending_verification');
    const callback = String(
      receiver.requests.findLast(({ path }) => path === '/later')!.headers['webhook-request-callback'],
    ).replace('https://posthorn.example.com', api.baseUrl);
    expect((await fetch(`${callback}x`, { method: 'POST' })).status).toBe(404);
    expect((await fetch(callback, { method: 'POST', headers: { 'WebHook-Allowed-Rate': '60' } })).status).toBe(200);
    expect(await endpoint(id)).toMatchObject({ status: 'active', allowed_rate_per_minute: 60 });
    // The address has served its purpose.
    expect((await fetch(callback, { method: 'POST' })).status).toBe(404);
  });
});

describe('an endpoint that nobody answers for', () => {
  it('is disabled when its time is over, and what was held becomes letters', async () => {
    receiver.answer = (_, reply) => void reply.writeHead(404).end();
    const { api, core } = posthorn;
    const { id } = await api.createEndpoint(`${receiver.url}/never`, ['never.*']);
    await tried(id);
    const { deliveries } = await api.publish('never.one');
    await core.db.query(
      `update endpoint_checks set started_at = now() - interval '73 h' where endpoint_id = $1 and kind = 'verification'`,
      [id],
    );
    await core.announcer.endpointChanged(id);
    await until('it is disabled', async () => (await endpoint(id)).status === 'disabled');
    expect(await endpoint(id)).toMatchObject({ status_reason: 'verification_expired' });
    expect(await api.delivery(deliveries[0]!.id, '10s')).toMatchObject({
      status: 'failed',
      reason: 'verification_expired',
      attempt_count: 0,
    });
    expect((await api.publish('never.two')).deliveries).toEqual([]);
    // It can be asked for again.
    receiver.answer = answersChallenges;
    expect((await api.post(`${subscriptions}/${id}/verify`)).status).toBe(202);
    await active(id);
  });
});

describe('another URL', () => {
  it('has to be verified itself; what waits is held meanwhile', async () => {
    const { api } = posthorn;
    receiver.answer = answersChallenges;
    const { id } = await api.createEndpoint(`${receiver.url}/first`, ['moved.*']);
    await active(id);
    receiver.answer = (request, reply) => void reply.writeHead(request.path === '/first' ? 200 : 503).end();
    const moved = await api.call('PATCH', `${subscriptions}/${id}`, { url: `${receiver.url}/second` });
    expect(moved.body).toMatchObject({ status: 'pending_verification', verification_state: { status: 'pending' } });
    const { deliveries } = await api.publish('moved.one');
    expect(await api.delivery(deliveries[0]!.id)).toMatchObject({ status: 'held' });
    receiver.answer = answersChallenges;
    await active(id);
    expect(await api.delivery(deliveries[0]!.id, '10s')).toMatchObject({ status: 'succeeded' });
    expect(receiver.of(deliveries[0]!.id).map(({ path }) => path)).toEqual(['/second']);
  });
});

describe('a periodic ping', () => {
  it('goes out at its time, signed, and counts for nothing', async () => {
    const { api, core } = posthorn;
    receiver.answer = answersChallenges;
    const { id } = await api.createEndpoint(`${receiver.url}/alive`, ['alive.*'], { ping_interval_ms: 60_000 });
    await active(id);
    receiver.answer = (_, reply) => void reply.writeHead(500).end();
    await until('a ping is planned', async () => {
      const [row] = await core.db.query<unknown[]>(
        `update endpoint_checks set next_at = now() where endpoint_id = $1 and kind = 'ping' returning 1`,
        [id],
      );
      return row;
    });
    await core.announcer.endpointChanged(id);
    const ping = await until('the ping came', async () =>
      receiver.requests.find(({ path, body }) => path === '/alive' && body.includes('webhook.ping')),
    );
    expect(ping.headers['webhook-signature']).toMatch(/^t=\d+,v1=/);
    expect(await endpoint(id)).toMatchObject({ status: 'active' });
    const [row] = await core.db.query<{ failing_since: Date | null }[]>(
      'select failing_since from endpoints where id = $1',
      [id],
    );
    expect(row!.failing_since).toBeNull();
  });
});
