import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HeldAnswers } from '../support/held-answers.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

let posthorn: RunningPosthorn;
beforeAll(async () => {
  posthorn = await startPosthorn();
});
afterAll(() => posthorn.stop());

/** The ordinary attempts in a delivery's history, as the server keeps them. */
async function ordinaryAttempts(client: Client, id: string) {
  const { events } = await client.workflow.getHandle(id).fetchHistory();
  return (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled, userMetadata }) => {
    if (!scheduled) return [];
    const summary = userMetadata?.summary;
    return [
      {
        activity: scheduled.activityType?.name,
        taskQueue: scheduled.taskQueue?.name,
        priorityKey: scheduled.priority?.priorityKey,
        fairnessKey: scheduled.priority?.fairnessKey,
        summary: summary ? defaultPayloadConverter.fromPayload<string>(summary) : null,
      },
    ];
  });
}

describe('an endpoint that answers slowly', () => {
  it('leaves the lane of the quick ones after its first slow answer', async () => {
    const { api, core } = posthorn;
    const held = new HeldAnswers();
    const receiver = await RecordingReceiver.start(held.answer);
    const { id: endpointId } = await api.createEndpoint(receiver.url, ['slow.answered']);
    const publish = async () => (await api.publish('slow.answered')).deliveries[0]!.id;

    const first = await publish();
    await held.arrived();
    const since = Date.now();
    await until('the answer is a slow one', async () => Date.now() - since > 1_050);
    held.release();
    expect(await api.delivery(first, '10s')).toMatchObject({ status: 'succeeded' });
    expect(await ordinaryAttempts(core.temporal.client!, first)).toEqual([]);

    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    const second = await publish();
    expect(await api.delivery(second, '10s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
    expect(await ordinaryAttempts(core.temporal.client!, second)).toEqual([
      {
        activity: 'attempt',
        taskQueue: 'posthorn-attempts',
        priorityKey: 3,
        fairnessKey: endpointId,
        summary: `attempt 1 → ${new URL(receiver.url).host}`,
      },
    ]);
    await receiver.stop();
  });

  it('takes no connection from others, and what finds none free spends no attempt', async () => {
    const { api } = posthorn;
    const held = new HeldAnswers();
    const slow = await RecordingReceiver.start(held.answer);
    const quick = await RecordingReceiver.start();
    await api.createEndpoint(slow.url, ['crowd.came'], { retry_waits_ms: [60_000] });
    await api.createEndpoint(quick.url, ['crowd.passed']);
    const crowd = await Promise.all(
      Array.from({ length: 90 }, async () => (await api.publish('crowd.came')).deliveries[0]!.id),
    );
    await held.arrived(64);
    const publishedAt = Date.now();
    const passing = (await api.publish('crowd.passed')).deliveries[0]!.id;
    expect(await api.delivery(passing, '10s')).toMatchObject({ status: 'succeeded' });
    expect(quick.of(passing)[0]!.at - publishedAt).toBeLessThan(2_000);
    // Longer than a request waits for one of its endpoint's to end.
    await until('nobody else got one', async () => Date.now() - publishedAt > 1_000);
    expect(held.count).toBe(64);
    slow.answer = (_, reply) => void reply.writeHead(200).end();
    held.release();
    for (const id of crowd)
      expect(await api.delivery(id, '20s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
    expect(slow.requests).toHaveLength(90);
    await Promise.all([slow.stop(), quick.stop()]);
  });

  it('delays no other endpoint, not even one on the same origin', async () => {
    const { api } = posthorn;
    const held = new HeldAnswers();
    const receiver = await RecordingReceiver.start((request, reply, count) =>
      request.path === '/slow' ? held.answer(request, reply, count) : void reply.writeHead(200).end(),
    );
    await api.createEndpoint(`${receiver.url}/slow`, ['burst.came'], { retry_waits_ms: [60_000] });
    await api.createEndpoint(`${receiver.url}/quick`, ['burst.passed']);
    const burst = Array.from({ length: 250 }, () => ({ type: 'burst.came', data: {} }));
    expect((await api.post('/v1/events/batch', { events: burst })).status).toBeLessThan(300);
    await held.arrived();
    for (let n = 0; n < 5; n += 1) {
      const publishedAt = Date.now();
      const { id } = (await api.publish('burst.passed')).deliveries[0]!;
      expect(await api.delivery(id, '10s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
      // Sooner than any of those that hang could end, however slow the machine.
      expect(receiver.of(id)[0]!.at - publishedAt).toBeLessThan(8_000);
    }
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    held.release();
    await until(
      'all of the burst have arrived',
      async () => receiver.requests.filter(({ path }) => path === '/slow').length >= 250,
      60_000,
    );
    await receiver.stop();
  });
});

describe('the start of a delivery', () => {
  it('takes turns with those of other endpoints, and is eager all the same', async () => {
    const { api, core } = posthorn;
    const receiver = await RecordingReceiver.start();
    const { id: endpointId } = await api.createEndpoint(receiver.url, ['start.fair']);
    const { id } = (await api.publish('start.fair')).deliveries[0]!;
    expect(await api.delivery(id, '10s')).toMatchObject({ status: 'succeeded' });
    const events = await until('the workflow has closed', async () => {
      const { events: found } = await core.temporal.client!.workflow.getHandle(id).fetchHistory();
      return found && found.length >= 6 && found;
    });
    expect(events).toHaveLength(6);
    expect(events[0]?.workflowExecutionStartedEventAttributes).toMatchObject({
      eagerExecutionAccepted: true,
      priority: { priorityKey: 3, fairnessKey: endpointId },
    });
    await receiver.stop();
  });
});
