import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { WorkflowHandle } from '@temporalio/client';
import { findTestTemporalCli } from '../support/engines.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';
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

/** An endpoint of its own for each test, quick by birth, and one delivery to it. */
async function publish(): Promise<string> {
  const type = `by.hand.n${randomUUID().replaceAll('-', '')}`;
  await posthorn.api.createEndpoint(`${receiver.url}/in`, [type]);
  const { deliveries } = await posthorn.api.publish(type, { card: 4242 });
  return deliveries[0]!.id;
}

async function delivered(): Promise<string> {
  const id = await publish();
  expect(await posthorn.api.delivery(id, '10s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
  await closedAs(id, 'COMPLETED');
  return id;
}

const closedAs = (id: string, status: string): Promise<unknown> =>
  until(`the workflow is ${status}`, async () => (await workflow(id).describe()).status.name === status);

const rowIs = (id: string, expected: Record<string, unknown>): Promise<unknown> =>
  until(`the row is ${JSON.stringify(expected)}`, async () => {
    const row = await posthorn.api.delivery(id);
    return Object.entries(expected).every(([key, value]) => row[key] === value) && row;
  });

/** Keeps answers back until the test gives them. */
function holdAnswers(): { readonly held: ServerResponse[]; readonly arrived: () => Promise<unknown> } {
  const held: ServerResponse[] = [];
  receiver.answer = (_, reply) => void held.push(reply);
  return { held, arrived: () => until('the request has arrived', async () => held.length > 0) };
}

async function reset(id: string, eventId: number): Promise<void> {
  const { client, namespace } = posthorn.core.temporal;
  const { runId } = await workflow(id).describe();
  await client!.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: id, runId },
    reason: 'an operator wants it sent again',
    workflowTaskFinishEventId: eventId as never,
    requestId: randomUUID(),
  });
}

/** Events that a Reset may name: completed workflow tasks. */
async function completedTasks(id: string): Promise<number[]> {
  const { events } = await workflow(id).fetchHistory();
  return (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes).map((event) => Number(event.eventId));
}

async function phase(id: string): Promise<DeliverState['phase']> {
  return (await workflow(id).query<DeliverState>('state')).phase;
}

const waits = (id: string): Promise<unknown> => until('it waits', async () => (await phase(id)) === 'waiting');

describe('a cancellation by hand while a delivery waits', () => {
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
    await waits(id);
    await cancel(id);
    await closedAs(id, 'CANCELLED');
    expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'cancelled', reason: 'cancelled_by_request' });
  });
});
