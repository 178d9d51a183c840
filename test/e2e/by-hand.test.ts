import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { findTestTemporalCli } from '../support/engines.js';
import { HeldAnswers } from '../support/held-answers.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';
import { workflowEnds } from '../support/workflows.js';
import type { DeliverState } from '../../workflows/contracts/deliver.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;

beforeAll(async () => {
  posthorn = await startPosthorn({ extra: { POSTHORN_DELIVERY_RETRY_WAITS: '1s,1h' } });
  receiver = await RecordingReceiver.start();
});
beforeEach(() => {
  receiver.answer = (_, reply) => void reply.writeHead(200).end('ok');
});
afterAll(async () => {
  await receiver.stop();
  await posthorn.stop();
});

const workflow = (id: string): WorkflowHandle => posthorn.core.temporal.client!.workflow.getHandle(id);
const ends = (id: string, status: Parameters<typeof workflowEnds>[2]): Promise<void> =>
  workflowEnds(posthorn.core.temporal.client!, id, status);

/** One delivery to an endpoint of its own, quick by birth. */
async function publish(settings: Record<string, unknown> = {}): Promise<string> {
  const type = `by.hand.n${randomUUID().replaceAll('-', '')}`;
  await posthorn.api.createEndpoint(`${receiver.url}/in`, [type], settings);
  const { deliveries } = await posthorn.api.publish(type, { card: 4242 });
  return deliveries[0]!.id;
}

async function delivered(): Promise<string> {
  const id = await publish();
  await ends(id, 'COMPLETED');
  expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'succeeded', round: 1 });
  return id;
}

const rowIs = (id: string, expected: Record<string, unknown>, timeoutMs?: number): Promise<unknown> =>
  until(
    `the row is ${JSON.stringify(expected)}`,
    async () => {
      const row = await posthorn.api.delivery(id);
      return Object.entries(expected).every(([key, value]) => row[key] === value);
    },
    timeoutMs,
  );

const stateOf = (id: string): Promise<DeliverState> => workflow(id).query<DeliverState>('state');

/** Keeps answers back until the test gives them. */
function holdAnswers(): HeldAnswers {
  const held = new HeldAnswers();
  receiver.answer = held.answer;
  return held;
}

/** As the Web UI does it: the run goes on from the end of this workflow task, under a new run id. */
async function reset(id: string, workflowTask: number): Promise<void> {
  const { client, namespace } = posthorn.core.temporal;
  const { runId } = await workflow(id).describe();
  const { events } = await workflow(id).fetchHistory();
  const completed = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
  await client!.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: id, runId },
    reason: 'an operator wants it sent again',
    workflowTaskFinishEventId: completed[workflowTask - 1]!.eventId!,
    requestId: randomUUID(),
  });
}

/** The command that the welcome text prints, with the delivery's id in both places. */
async function startByCli(id: string, input: unknown = { deliveryId: id }): Promise<void> {
  const target = ['--address', inject('temporalAddress'), '--namespace', posthorn.namespace];
  const what = ['--task-queue', 'posthorn', '--type', 'deliver', '--workflow-id', id, '--input', JSON.stringify(input)];
  await promisify(execFile)(await findTestTemporalCli(), ['workflow', 'start', ...target, ...what]);
}

describe('a cancellation while a delivery waits', () => {
  beforeEach(() => {
    receiver.answer = (_, reply) => void reply.writeHead(500).end();
  });

  it.each([
    ['the signal', (id: string) => workflow(id).signal('cancel')],
    ['Request Cancellation', (id: string) => workflow(id).cancel()],
    ['the API', (id: string) => posthorn.api.post(`/v1/webhook-deliveries/${id}/cancel`)],
  ])('by %s ends the run as Cancelled and the row as cancelled', async (_, cancel) => {
    const id = await publish();
    await rowIs(id, { status: 'retrying', attempt_count: 2 });
    await until('it waits', async () => (await stateOf(id)).phase === 'waiting');
    await cancel(id);
    await ends(id, 'CANCELLED');
    expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'cancelled', reason: 'cancelled_by_request' });
    expect(receiver.of(id)).toHaveLength(2);
  });
});

describe('in the middle of a first attempt that hangs', () => {
  it('a query is answered, and neither it nor signals cause a second request', async () => {
    const held = holdAnswers();
    const id = await publish({ timeout_ms: 30_000 });
    await held.arrived();
    await workflow(id).signal('retryNow');
    expect(await stateOf(id)).toMatchObject({ phase: 'attempting', attempts: 0 });
    await workflow(id).signal('retryNow');
    held.release(200);
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(1);
    expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'succeeded', attempt_count: 1 });
  });

  it('`retryNow` makes the next attempt follow a failure at once', async () => {
    const held = holdAnswers();
    const id = await publish({ timeout_ms: 30_000, retry_waits_ms: [3_600_000] });
    await held.arrived();
    await workflow(id).signal('retryNow');
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    held.release(503);
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(2);
    expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'succeeded', attempt_count: 2 });
  });

  describe.each([
    ['the signal', (id: string) => workflow(id).signal('cancel')],
    ['Request Cancellation', (id: string) => workflow(id).cancel()],
    ['the API', (id: string) => posthorn.api.post(`/v1/webhook-deliveries/${id}/cancel`)],
  ])('a cancellation by %s', (_, cancel) => {
    it('keeps the success of the attempt', async () => {
      const held = holdAnswers();
      const id = await publish({ timeout_ms: 30_000 });
      await held.arrived();
      await cancel(id);
      held.release(200);
      await ends(id, 'COMPLETED');
      expect(receiver.of(id)).toHaveLength(1);
      expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'succeeded', reason: 'delivered' });
    });

    it('ends as Cancelled where the attempt fails', async () => {
      const held = holdAnswers();
      const id = await publish({ timeout_ms: 30_000 });
      await held.arrived();
      await cancel(id);
      held.release(500);
      await ends(id, 'CANCELLED');
      expect(receiver.of(id)).toHaveLength(1);
      expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'cancelled', attempt_count: 1 });
    });
  });
});

describe('Reset of a closed run', () => {
  it('at its first workflow task sends again, as the next round', async () => {
    const id = await delivered();
    await reset(id, 1);
    await rowIs(id, { status: 'succeeded', round: 2, attempt_count: 2 });
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(2);
  });

  it('in the middle of its history sends again too', async () => {
    receiver.answer = (_, reply, count) => void reply.writeHead(count % 2 === 1 ? 500 : 200).end();
    receiver.requests.length = 0;
    const id = await publish();
    await ends(id, 'COMPLETED');
    expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'succeeded', attempt_count: 2 });
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    await reset(id, 2);
    await rowIs(id, { status: 'succeeded', round: 2, attempt_count: 3 });
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(3);
  });

  it('sends once for each of two Resets in a row', async () => {
    const id = await delivered();
    await reset(id, 1);
    await rowIs(id, { status: 'succeeded', round: 2 });
    await ends(id, 'COMPLETED');
    await reset(id, 1);
    await rowIs(id, { status: 'succeeded', round: 3 });
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(3);
  });

  it('of a dead letter gives it a full schedule again', async () => {
    receiver.answer = (_, reply) => void reply.writeHead(500).end();
    const id = await publish({ retry_waits_ms: [100] });
    await ends(id, 'FAILED');
    await reset(id, 1);
    await rowIs(id, { status: 'failed', round: 2, attempt_count: 4 });
    await ends(id, 'FAILED');
  });
});

describe('a start by hand', () => {
  it('of a delivered delivery, by the printed command, redelivers it and labels the run', async () => {
    const id = await delivered();
    await startByCli(id);
    await rowIs(id, { status: 'succeeded', round: 2, attempt_count: 2 });
    await ends(id, 'COMPLETED');
    expect(receiver.of(id)).toHaveLength(2);
    const { event_id: eventId, endpoint_id: endpointId } = await posthorn.api.delivery(id);
    const { typedSearchAttributes } = await workflow(id).describe();
    expect(Object.fromEntries(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]))).toMatchObject(
      {
        PosthornTenantId: 'default',
        PosthornEndpointId: endpointId,
        PosthornEventId: eventId,
      },
    );
  });

  it('of a cancelled delivery redelivers it', async () => {
    receiver.answer = (_, reply) => void reply.writeHead(500).end();
    const id = await publish();
    await rowIs(id, { status: 'retrying' });
    await posthorn.api.post(`/v1/webhook-deliveries/${id}/cancel`);
    await ends(id, 'CANCELLED');
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    await startByCli(id);
    await rowIs(id, { status: 'succeeded', round: 2 });
  });

  it('of a delivery that nobody knows, or under another id, fails as InvalidInput and sends nothing', async () => {
    const before = receiver.requests.length;
    const known = await delivered();
    await startByCli('whd_01ARZ3NDEKTSV4RRFFQ69G5FAV');
    await ends('whd_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'FAILED');
    await startByCli('my-own-name', { deliveryId: known });
    await ends('my-own-name', 'FAILED');
    await expect(workflow('my-own-name').result()).rejects.toMatchObject({ cause: { type: 'InvalidInput' } });
    expect(receiver.requests).toHaveLength(before + 1);
    expect(await posthorn.api.delivery(known)).toMatchObject({ round: 1, attempt_count: 1 });
  });
});

describe('Terminate by hand', () => {
  it('turns the row cancelled with the reason terminated_by_operator, and nothing is sent any more', async () => {
    receiver.answer = (_, reply) => void reply.writeHead(500).end();
    const id = await publish({ retry_waits_ms: [2_000, 2_000] });
    await rowIs(id, { status: 'retrying' });
    await workflow(id).terminate('an operator gave it up');
    const sent = receiver.of(id).length;
    await rowIs(id, { status: 'cancelled', reason: 'terminated_by_operator' }, 30_000);
    expect(receiver.of(id)).toHaveLength(sent);
  });
});
