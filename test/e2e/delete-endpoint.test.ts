import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deadLetterQueueWorkflowId } from '../../workflows/contracts/names.js';
import { HeldAnswers } from '../support/held-answers.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';
import { workflowEnds } from '../support/workflows.js';

let posthorn: RunningPosthorn;
beforeAll(async () => {
  posthorn = await startPosthorn({ extra: { POSTHORN_DELIVERY_ALERT_WINDOW: '1s' } });
});
afterAll(() => posthorn.stop());

/** Long enough for anything that was still on its way to have left. */
async function nothingMoreArrives(receiver: RecordingReceiver): Promise<void> {
  const count = receiver.requests.length;
  const sentinel = await RecordingReceiver.start();
  await posthorn.api.createEndpoint(sentinel.url, ['sentinel.sent']);
  await posthorn.api.publish('sentinel.sent');
  await until('a later delivery has arrived elsewhere', async () => sentinel.requests.length > 0);
  await sentinel.stop();
  expect(receiver.requests).toHaveLength(count);
}

const deliveriesOf = async (endpointId: string) =>
  (await posthorn.api.get(`/v1/webhook-deliveries?endpoint_id=${endpointId}`)).body.data as {
    id: string;
    status: string;
    reason: string;
    attempt_count: number;
    next_attempt_at: string | null;
  }[];

describe('deleting an endpoint', () => {
  it('cancels what waits, ends its workflows, and nothing is sent afterwards', async () => {
    const { api, core } = posthorn;
    const answers = new HeldAnswers();
    const receiver = await RecordingReceiver.start(answers.answer);
    const waits = [1_500, 1_500, 1_500];
    const { id: endpointId } = await api.createEndpoint(receiver.url, ['deleted.waiting'], { retry_waits_ms: waits });
    for (let n = 0; n < 20; n += 1) await api.publish('deleted.waiting', { n });
    // All of them are in flight before the endpoint is known to be down: else they would be held, without a workflow.
    await answers.arrived(20);
    receiver.answer = (_, reply) => void reply.writeHead(500).end();
    answers.releaseEach(() => 500);
    await until('all of them wait', async () =>
      (await deliveriesOf(endpointId)).every(({ status }) => status === 'retrying'),
    );
    expect((await api.delete(`/v1/webhooks/subscriptions/${endpointId}`)).status).toBe(204);
    const deletedAt = Date.now();
    const closed = await deliveriesOf(endpointId);
    expect(closed).toHaveLength(20);
    for (const delivery of closed)
      expect(delivery).toMatchObject({ status: 'cancelled', reason: 'endpoint_deleted', next_attempt_at: null });
    for (const { id } of closed) await workflowEnds(core.temporal.client!, id, 'CANCELLED');
    await nothingMoreArrives(receiver);
    // What was on its way between the read and the dial may still arrive within milliseconds.
    expect(receiver.requests.filter(({ at }) => at > deletedAt + 250)).toEqual([]);
    expect((await api.get(`/v1/webhooks/subscriptions/${endpointId}`)).status).toBe(404);
    expect((await api.publish('deleted.waiting')).deliveries).toEqual([]);
    const again = await api.post(`/v1/webhook-deliveries/${closed[0]!.id}/redeliver`);
    expect(again.status).toBe(409);
    expect(again.body).toMatchObject({ code: 'endpoint_unavailable' });
    await receiver.stop();
  });

  it('lets requests in flight finish, and records what came of them', async () => {
    const { api, core } = posthorn;
    const held = new HeldAnswers();
    const receiver = await RecordingReceiver.start(held.answer);
    const { id: endpointId } = await api.createEndpoint(receiver.url, ['deleted.inflight'], { retry_waits_ms: [100] });
    const [succeeds, fails] = [
      (await api.publish('deleted.inflight')).deliveries[0]!.id,
      (await api.publish('deleted.inflight')).deliveries[0]!.id,
    ];
    await held.arrived(2);
    expect((await api.delete(`/v1/webhooks/subscriptions/${endpointId}`)).status).toBe(204);
    expect(await api.delivery(succeeds)).toMatchObject({ status: 'cancelled', attempt_count: 0 });
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    held.releaseEach(({ deliveryId }) => (deliveryId === succeeds ? 200 : 500));
    await until('the success counts', async () => (await api.delivery(succeeds)).status === 'succeeded');
    await until('the failure is recorded', async () => (await api.delivery(fails)).attempt_count === 1);
    expect(await api.delivery(fails)).toMatchObject({
      status: 'cancelled',
      reason: 'endpoint_deleted',
      last_status_code: 500,
    });
    await workflowEnds(core.temporal.client!, succeeds, 'COMPLETED');
    await workflowEnds(core.temporal.client!, fails, 'CANCELLED');
    expect(receiver.requests).toHaveLength(2);
    await receiver.stop();
  });
});

describe('an endpoint that answers 410', () => {
  it('is disabled, and what waits for it becomes dead letters', async () => {
    const { api, core } = posthorn;
    const receiver = await RecordingReceiver.start((_, reply) => void reply.writeHead(500).end());
    const { id: endpointId } = await api.createEndpoint(receiver.url, ['gone.case'], { retry_waits_ms: [60_000] });
    const waiting = await Promise.all(
      Array.from({ length: 2 }, async () => (await api.publish('gone.case')).deliveries[0]!.id),
    );
    await until('all of them wait', async () =>
      (await deliveriesOf(endpointId)).every(({ status }) => status === 'retrying'),
    );
    const requests = receiver.requests.length;
    receiver.answer = (_, reply) => void reply.writeHead(410).end();
    const gone = (await api.publish('gone.case')).deliveries[0]!.id;
    expect(await api.delivery(gone, '10s')).toMatchObject({
      status: 'failed',
      reason: 'endpoint_gone',
      attempt_count: 1,
      last_status_code: 410,
    });
    expect((await api.get(`/v1/webhooks/subscriptions/${endpointId}`)).body).toMatchObject({
      status: 'disabled',
      status_reason: 'gone',
    });
    await until('the waiting ones have failed', async () =>
      (await deliveriesOf(endpointId)).every(({ status, reason }) => status === 'failed' && reason === 'endpoint_gone'),
    );
    for (const id of [gone, ...waiting]) await workflowEnds(core.temporal.client!, id, 'FAILED');
    const queue = core.temporal.client!.workflow.getHandle(deadLetterQueueWorkflowId(endpointId));
    await until('all letters are announced', async () => {
      const state = await queue.query<{ openLetters: number; lettersAnnounced: number }>('state');
      return state.openLetters === 3 && state.lettersAnnounced === 3;
    });
    expect((await queue.describe()).status.name).toBe('RUNNING');
    expect((await api.publish('gone.case')).deliveries).toEqual([]);
    expect((await api.post(`/v1/webhook-deliveries/${waiting[0]}/redeliver`)).status).toBe(409);
    await nothingMoreArrives(receiver);
    expect(receiver.requests).toHaveLength(requests + 1);
    await receiver.stop();
  });
});
