import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HeldAnswers } from '../support/held-answers.js';
import { type Answerer, RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';
import { workflowEnds } from '../support/workflows.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;
/** What each path of the receiver answers; 200 where nothing is said. */
const paths = new Map<string, Answerer>();
let types = 0;

beforeAll(async () => {
  posthorn = await startPosthorn();
  receiver = await RecordingReceiver.start((request, reply, count) => {
    const answer = paths.get(request.path);
    if (answer) answer(request, reply, count);
    else reply.writeHead(200).end();
  });
});
afterAll(async () => {
  await receiver.stop();
  await posthorn.stop();
});

/** A published event for an endpoint of its own. */
async function publish(answer: Answerer | null, settings: Record<string, unknown> = {}) {
  const n = ++types;
  const path = `/redelivery-${n}`;
  if (answer) paths.set(path, answer);
  const endpoint = await posthorn.api.createEndpoint(receiver.url + path, [`redelivery.case${n}`], settings);
  const { deliveries } = await posthorn.api.publish(`redelivery.case${n}`, { n });
  return { id: deliveries[0]!.id, path, endpointId: endpoint.id };
}

const says =
  (status: number): Answerer =>
  (_, reply) =>
    void reply.writeHead(status).end();

const redeliver = (id: string, body?: unknown) => posthorn.api.post(`/v1/webhook-deliveries/${id}/redeliver`, body);
const cancel = (id: string, body?: unknown) => posthorn.api.post(`/v1/webhook-deliveries/${id}/cancel`, body);
const reaches = (id: string, expected: { status: string; round?: number; attempt_count?: number }) =>
  until(`${id} is ${JSON.stringify(expected)}`, async () => {
    const delivery = await posthorn.api.delivery(id);
    return Object.entries(expected).every(([key, value]) => delivery[key] === value) && delivery;
  });
const ends = (id: string, status: Parameters<typeof workflowEnds>[2]) =>
  workflowEnds(posthorn.core.temporal.client!, id, status);

describe('redelivering a closed delivery', () => {
  it('sends a succeeded one again, in round 2, under the same id', async () => {
    const { id } = await publish(null);
    await reaches(id, { status: 'succeeded' });
    const answer = await redeliver(id, { reason: 'the consumer lost it' });
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({
      status: 'pending',
      reason: 'redelivery_requested',
      round: 2,
      request_reason: 'the consumer lost it',
      already_in_progress: false,
    });
    expect(await reaches(id, { status: 'succeeded', round: 2, attempt_count: 2 })).toMatchObject({
      reason: 'delivered',
    });
    const requests = receiver.of(id);
    expect(requests.map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2']);
    expect(requests[1]!.body).toEqual(requests[0]!.body);
    expect((await posthorn.api.attempts(id)).map(({ round }) => round)).toEqual([1, 2]);
    await ends(id, 'COMPLETED');
  });

  it('gives a failed one a full schedule again', async () => {
    const { id } = await publish(says(500), { retry_waits_ms: [100] });
    await reaches(id, { status: 'failed', attempt_count: 2 });
    await ends(id, 'FAILED');
    expect((await redeliver(id)).body).toMatchObject({ round: 2, already_in_progress: false });
    expect(await reaches(id, { status: 'failed', round: 2, attempt_count: 4 })).toMatchObject({
      reason: 'attempts_exhausted',
    });
    expect(receiver.of(id)).toHaveLength(4);
  });

  it('sends a cancelled one', async () => {
    const { id, path } = await publish(says(500), { retry_waits_ms: [60_000] });
    await reaches(id, { status: 'retrying' });
    expect((await cancel(id)).status).toBe(202);
    await ends(id, 'CANCELLED');
    paths.set(path, says(200));
    expect((await redeliver(id)).body).toMatchObject({ round: 2, already_in_progress: false });
    await reaches(id, { status: 'succeeded', round: 2, attempt_count: 2 });
    await ends(id, 'COMPLETED');
  });

  it('has its effect also while the cancelled workflow is still about to end', async () => {
    const { id, path } = await publish(says(500), { retry_waits_ms: [60_000] });
    await reaches(id, { status: 'retrying' });
    paths.set(path, says(200));
    await cancel(id);
    expect((await redeliver(id)).body).toMatchObject({ round: 2, already_in_progress: false });
    await reaches(id, { status: 'succeeded', round: 2, attempt_count: 2 });
    await ends(id, 'COMPLETED');
  });

  it('has its effect also when a request of the cancelled round is still in flight', async () => {
    const held = new HeldAnswers();
    const { id, path } = await publish(held.answer);
    await held.arrived();
    expect((await cancel(id)).body).toMatchObject({ status: 'cancelled' });
    expect((await redeliver(id)).body).toMatchObject({ round: 2, already_in_progress: false });
    paths.set(path, says(200));
    held.release(500);
    await reaches(id, { status: 'succeeded', round: 2, attempt_count: 2 });
    expect(receiver.of(id)).toHaveLength(2);
    await ends(id, 'COMPLETED');
  });

  it('twice in quick succession sends as often as it was accepted', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, async () => (await publish(null)).id));
    for (const id of ids) {
      await reaches(id, { status: 'succeeded' });
      const answers = [await redeliver(id), await redeliver(id)];
      expect(answers.map(({ status }) => status)).toEqual([202, 202]);
      const accepted = answers.filter(({ body }) => body.already_in_progress === false).length;
      await reaches(id, { status: 'succeeded', round: 1 + accepted, attempt_count: 1 + accepted });
      await ends(id, 'COMPLETED');
      expect(receiver.of(id)).toHaveLength(1 + accepted);
    }
  });

  it('ten times at once sends as often as it was accepted', async () => {
    const { id } = await publish(null);
    await reaches(id, { status: 'succeeded' });
    const answers = await Promise.all(Array.from({ length: 10 }, () => redeliver(id)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
    const accepted = answers.filter(({ body }) => body.already_in_progress === false).length;
    expect(accepted).toBeGreaterThanOrEqual(1);
    await reaches(id, { status: 'succeeded', round: 1 + accepted, attempt_count: 1 + accepted });
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(1 + accepted);
  });

  it('ten times at once, while the endpoint takes its time, sends once', async () => {
    const held = new HeldAnswers();
    const { id, path } = await publish(null);
    await reaches(id, { status: 'succeeded' });
    paths.set(path, held.answer);
    const answers = await Promise.all(Array.from({ length: 10 }, () => redeliver(id)));
    expect(answers.filter(({ body }) => body.already_in_progress === false)).toHaveLength(1);
    await held.arrived();
    held.release();
    await reaches(id, { status: 'succeeded', round: 2, attempt_count: 2 });
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(2);
  });
});

describe('redelivering an open delivery', () => {
  it('is answered by the request in flight', async () => {
    const held = new HeldAnswers();
    const { id } = await publish(held.answer);
    await held.arrived();
    const answer = await redeliver(id);
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({ round: 1, already_in_progress: true });
    held.release();
    await reaches(id, { status: 'succeeded', round: 1, attempt_count: 1 });
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(1);
  });

  it('ends its wait at once', async () => {
    const { id, path } = await publish(says(500), { retry_waits_ms: [60_000, 60_000] });
    await reaches(id, { status: 'retrying' });
    paths.set(path, says(200));
    const askedAt = Date.now();
    expect((await redeliver(id)).body).toMatchObject({ round: 1, already_in_progress: false });
    await reaches(id, { status: 'succeeded', round: 1, attempt_count: 2 });
    expect(receiver.of(id)[1]!.at - askedAt).toBeLessThan(3_000);
  });

  it('goes on with its schedule when the attempt that was asked for fails', async () => {
    const { id } = await publish(says(500), { retry_waits_ms: [60_000, 100] });
    await reaches(id, { status: 'retrying' });
    await redeliver(id);
    await reaches(id, { status: 'failed', round: 1, attempt_count: 3 });
    await ends(id, 'FAILED');
  });

  it('ends the rest that its endpoint had asked for', async () => {
    const {
      id: first,
      path,
      endpointId,
    } = await publish((_, reply) => void reply.writeHead(503, { 'retry-after': '600' }).end());
    await reaches(first, { status: 'retrying' });
    const { type } = await posthorn.api.delivery(first);
    const { deliveries } = await posthorn.api.publish(type);
    const second = deliveries.find(({ endpoint_id }) => endpoint_id === endpointId)!.id;
    await until('the second one waits for the endpoint', async () => {
      const handle = posthorn.core.temporal.client!.workflow.getHandle(second);
      const state = await handle.query<{ phase: string }>('state');
      return state.phase === 'waiting';
    });
    expect(receiver.of(second)).toHaveLength(0);
    const waiting = await posthorn.api.delivery(second);
    expect(waiting).toMatchObject({ status: 'pending', reason: 'retry_after', attempt_count: 0 });
    expect(Date.parse(waiting.next_attempt_at) - Date.now()).toBeGreaterThan(500_000);
    paths.set(path, says(200));
    for (const id of [first, second]) {
      expect((await redeliver(id)).body).toMatchObject({ already_in_progress: false });
      await reaches(id, { status: 'succeeded', round: 1 });
    }
  });
});

describe('cancelling a delivery', () => {
  it('ends a waiting one, its workflow too', async () => {
    const { id } = await publish(says(500), { retry_waits_ms: [60_000] });
    await reaches(id, { status: 'retrying' });
    const answer = await cancel(id, { reason: 'not needed' });
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({
      status: 'cancelled',
      reason: 'cancelled_by_request',
      request_reason: 'not needed',
      next_attempt_at: null,
    });
    await ends(id, 'CANCELLED');
    expect(receiver.of(id)).toHaveLength(1);
  });

  it('lets a request in flight still succeed', async () => {
    const held = new HeldAnswers();
    const { id } = await publish(held.answer);
    await held.arrived();
    expect((await cancel(id)).body).toMatchObject({ status: 'cancelled' });
    held.release();
    await reaches(id, { status: 'succeeded', attempt_count: 1 });
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(1);
  });

  it('stays cancelled when the request in flight fails, and sends nothing more', async () => {
    const held = new HeldAnswers();
    const { id } = await publish(held.answer, { retry_waits_ms: [100] });
    await held.arrived();
    await cancel(id);
    held.release(500);
    await reaches(id, { status: 'cancelled', attempt_count: 1 });
    await ends(id, 'CANCELLED');
    expect(receiver.of(id)).toHaveLength(1);
  });

  it('is refused for a closed one', async () => {
    const { id } = await publish(null);
    await reaches(id, { status: 'succeeded' });
    const answer = await cancel(id);
    expect(answer.status).toBe(409);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(answer.body).toMatchObject({ code: 'delivery_closed' });
  });
});
