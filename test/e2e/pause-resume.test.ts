import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HeldAnswers } from '../support/held-answers.js';
import { type Answerer, RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';
import { workflowEnds } from '../support/workflows.js';

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

const path = '/v1/webhooks/subscriptions';
/** Longer than any test: what goes on before that was released. */
const longWaits = { retry_waits_ms: [600_000, 600_000] };

const answering =
  (status: number): Answerer =>
  (_, reply) =>
    void reply.writeHead(status).end();

// oxlint-disable-next-line typescript/no-explicit-any
async function endpoint(id: string): Promise<any> {
  return (await posthorn.api.get(`${path}/${id}`)).body;
}

// oxlint-disable-next-line typescript/no-explicit-any
async function act(id: string, action: string, body?: unknown): Promise<any> {
  const answer = await posthorn.api.post(`${path}/${id}/${action}`, body);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
}

const published = async (type: string): Promise<string> => (await posthorn.api.publish(type)).deliveries[0]!.id;

/** Delivered to in vain, and now waiting for a retry that is far away. */
async function waitingForRetry(type: string): Promise<string> {
  const id = await published(type);
  await until('it waits for its retry', async () => (await posthorn.api.delivery(id)).status === 'retrying');
  return id;
}

describe('a paused endpoint', () => {
  it('gets what was published meanwhile when it is resumed: in order, each once, at a rising rate', async () => {
    const { api } = posthorn;
    receiver.answer = answering(200);
    const { id } = await api.createEndpoint(`${receiver.url}/held`, ['held.*']);
    expect(await act(id, 'pause')).toMatchObject({ id, status: 'paused', status_reason: null });
    const deliveries: string[] = [];
    for (let n = 0; n < 12; n++) deliveries.push(await published('held.event'));
    for (const delivery of deliveries) {
      expect(await api.delivery(delivery)).toMatchObject({
        status: 'held',
        reason: 'endpoint_paused',
        attempt_count: 0,
        next_attempt_at: null,
      });
    }
    expect(receiver.requests).toEqual([]);

    const resumedAt = Date.now();
    expect(await act(id, 'resume')).toMatchObject({ status: 'active' });
    await until('all have arrived', async () => receiver.requests.length >= 12, 60_000);
    await until('all are recorded', async () => {
      const { data } = (await api.get(`/v1/webhook-deliveries?endpoint_id=${id}&status=succeeded`)).body;
      return data.length === 12;
    });
    expect(receiver.requests.map(({ deliveryId }) => deliveryId)).toEqual(deliveries);
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-attempt']))).toEqual(new Set(['1']));
    const times = receiver.requests.map(({ at }) => at);
    expect(times[0]).toBeGreaterThanOrEqual(resumedAt);
    expect(times.filter((at) => at < times[0]! + 1_000).length).toBeLessThanOrEqual(5);
    // 1, then 1, 2, 4 and the rest, from second to second.
    expect(times.at(-1)! - times[0]!).toBeGreaterThan(2_000);
  });

  it('holds retries, too, which go on where they were', async () => {
    const { api, core } = posthorn;
    receiver.answer = answering(500);
    const { id } = await api.createEndpoint(`${receiver.url}/retry`, ['retry.*'], longWaits);
    const delivery = await waitingForRetry('retry.event');
    await act(id, 'pause');
    expect(await api.delivery(delivery)).toMatchObject({
      status: 'held',
      reason: 'endpoint_paused',
      attempt_count: 1,
      next_attempt_at: null,
    });
    // It isn't left waiting for a time that doesn't count any more.
    await workflowEnds(core.temporal.client!, delivery, 'COMPLETED');
    expect(await api.delivery(delivery)).toMatchObject({ status: 'held', attempt_count: 1 });

    receiver.answer = answering(200);
    await act(id, 'resume');
    expect(await api.delivery(delivery, '20s')).toMatchObject({ status: 'succeeded', round: 1, attempt_count: 2 });
    expect(receiver.of(delivery).map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2']);
  });

  it('lets requests in flight finish, and records what came of them', async () => {
    const { api } = posthorn;
    const held = new HeldAnswers();
    receiver.answer = held.answer;
    const { id } = await api.createEndpoint(`${receiver.url}/flight`, ['flight.*'], longWaits);
    const [succeeds, fails] = [await published('flight.one'), await published('flight.two')];
    await held.arrived(2);
    await act(id, 'pause');
    receiver.answer = answering(200);
    held.releaseEach(({ deliveryId }) => (deliveryId === succeeds ? 200 : 503));
    await until('the success counts', async () => (await api.delivery(succeeds)).status === 'succeeded');
    await until('the failure is recorded', async () => (await api.delivery(fails)).attempt_count === 1);
    expect(await api.delivery(fails)).toMatchObject({
      status: 'held',
      reason: 'endpoint_paused',
      last_status_code: 503,
      next_attempt_at: null,
    });
    expect(await api.attempts(fails)).toMatchObject([{ number: 1, status_code: 503 }]);

    await act(id, 'resume');
    expect(await api.delivery(fails, '20s')).toMatchObject({ status: 'succeeded', attempt_count: 2 });
    expect([receiver.of(succeeds).length, receiver.of(fails).length]).toEqual([1, 2]);
  });

  it('may be paused and resumed at once: nothing is lost, and nothing sent twice', async () => {
    const { api } = posthorn;
    receiver.answer = answering(500);
    const { id } = await api.createEndpoint(`${receiver.url}/flip`, ['flip.*'], longWaits);
    const deliveries = [await waitingForRetry('flip.one'), await waitingForRetry('flip.two')];
    receiver.answer = answering(200);
    for (let n = 0; n < 3; n++) {
      await act(id, 'pause');
      await act(id, 'resume');
    }
    for (const delivery of deliveries) {
      expect(await api.delivery(delivery, '30s')).toMatchObject({ status: 'succeeded', attempt_count: 2 });
      expect(receiver.of(delivery)).toHaveLength(2);
    }
  });
});

describe('an endpoint that has failed for seven days', () => {
  it('is disabled with what waits for it; enabled, it gets what is new', async () => {
    const { api, core } = posthorn;
    receiver.answer = answering(500);
    const { id } = await api.createEndpoint(`${receiver.url}/week`, ['week.*'], longWaits);
    const waiting = await waitingForRetry('week.before');
    await core.db.query(`update endpoints set failing_since = now() - interval '8 d' where id = $1`, [id]);
    await core.announcer.endpointChanged(id);
    await until('it is disabled', async () => (await endpoint(id)).status === 'disabled');
    expect(await endpoint(id)).toMatchObject({ status_reason: 'failing' });
    const letter = { status: 'failed', reason: 'endpoint_disabled', attempt_count: 1 };
    expect(await api.delivery(waiting, '10s')).toMatchObject(letter);
    expect((await api.publish('week.meanwhile')).deliveries).toEqual([]);
    expect((await api.get(`${path}/${id}/health`)).body).toMatchObject({
      status: 'disabled',
      missed: { events: 1 },
      evidence: { last_failures: [{ delivery_id: waiting, status_code: 500 }] },
    });
    expect((await api.post(`/v1/webhook-deliveries/${waiting}/redeliver`)).status).toBe(409);

    receiver.answer = answering(200);
    expect(await act(id, 'enable')).toMatchObject({ status: 'active', status_reason: null });
    const after = await published('week.after');
    expect(await api.delivery(after, '20s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
    // It has a new week, and its letters wait for a wish.
    expect((await api.get(`${path}/${id}/health`)).body).toMatchObject({ status: 'active', failing_since: null });
    expect(await api.delivery(waiting)).toMatchObject(letter);
    expect((await api.post(`/v1/webhook-deliveries/${waiting}/redeliver`)).status).toBe(202);
    expect(await api.delivery(waiting, '20s')).toMatchObject({ status: 'succeeded', round: 2 });
    expect(await endpoint(id)).toMatchObject({ status: 'active' });
  });
});

describe('an endpoint whose time is over', () => {
  it('expires with what waits for it; renewed, it gets what is new', async () => {
    const { api } = posthorn;
    receiver.answer = answering(500);
    const { id } = await api.createEndpoint(`${receiver.url}/date`, ['date.*'], {
      ...longWaits,
      expires_at: new Date(Date.now() + 5_000).toISOString(),
    });
    const waiting = await waitingForRetry('date.before');
    expect(await endpoint(id)).toMatchObject({ status: 'active' });
    await until('it has expired', async () => (await endpoint(id)).status === 'expired');
    expect(await api.delivery(waiting, '10s')).toMatchObject({
      status: 'failed',
      reason: 'endpoint_expired',
      attempt_count: 1,
    });
    expect((await api.publish('date.meanwhile')).deliveries).toEqual([]);

    receiver.answer = answering(200);
    const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
    expect(await act(id, 'renew', { expires_at: inAnHour })).toMatchObject({ status: 'active', expires_at: inAnHour });
    expect(await api.delivery(await published('date.after'), '20s')).toMatchObject({ status: 'succeeded' });
    expect(await act(id, 'renew', { expires_at: null })).toMatchObject({ status: 'active', expires_at: null });
  });
});

describe('a delivery that waited for a retry', () => {
  it('goes on although its workflow was not told of the pause', async () => {
    const { api, core } = posthorn;
    receiver.answer = answering(500);
    const { id } = await api.createEndpoint(`${receiver.url}/lost`, ['lost.*'], longWaits);
    const delivery = await waitingForRetry('lost.event');
    await core.health.pause('default', id);
    await core.waiting.closeAllOf(id);
    expect(await api.delivery(delivery)).toMatchObject({ status: 'held' });
    receiver.answer = answering(200);
    await act(id, 'resume');
    expect(await api.delivery(delivery, '40s')).toMatchObject({ status: 'succeeded', attempt_count: 2 });
  });
});
