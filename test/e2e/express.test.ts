import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/security/new-id.js';
import { HeldAnswers } from '../support/held-answers.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;
beforeAll(async () => {
  posthorn = await startPosthorn({ extra: { POSTHORN_DELIVERY_FIRST_ATTEMPT: 'express' } });
  await until('the lane takes deliveries', async () => posthorn.core.express?.leaseHolder);
});
afterAll(async () => {
  await receiver?.stop();
  await posthorn.stop();
});

const publish = async (type: string) => (await posthorn.api.publish(type)).deliveries[0]!.id;
const workflowOf = (id: string) => posthorn.core.gateway.describe(id);

async function lease(id: string): Promise<string | null> {
  const [row] = await posthorn.core.db.query<{ lease_holder: string | null }[]>(
    'select lease_holder from deliveries where id = $1',
    [id],
  );
  return row!.lease_holder;
}

describe('in the express lane', () => {
  it('a delivery that succeeds at once has its attempt, its lease is over, and no workflow was started', async () => {
    receiver = await RecordingReceiver.start();
    await posthorn.api.createEndpoint(receiver.url, ['express.sent']);
    const id = await publish('express.sent');
    expect(await posthorn.api.delivery(id, '10s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
    expect(await posthorn.api.attempts(id)).toMatchObject([{ number: 1, round: 1, status_code: 200 }]);
    expect(receiver.of(id)).toHaveLength(1);
    expect(await lease(id)).toBeNull();
    expect(await workflowOf(id)).toBe('not_found');
  });

  it('a batch is delivered, each event once', async () => {
    await posthorn.api.createEndpoint(receiver.url, ['express.batched']);
    const events = Array.from({ length: 300 }, (_, n) => ({ type: 'express.batched', data: { n } }));
    const { body } = await posthorn.api.post('/v1/events/batch', { events });
    const ids: string[] = body.data.map(
      (item: { event: { deliveries: { id: string }[] } }) => item.event.deliveries[0]!.id,
    );
    for (const id of ids) expect(await posthorn.api.delivery(id, '30s')).toMatchObject({ status: 'succeeded' });
    for (const id of ids) expect(receiver.of(id)).toHaveLength(1);
  });

  it('a redelivery starts a workflow, which counts on', async () => {
    await posthorn.api.createEndpoint(receiver.url, ['express.again']);
    const id = await publish('express.again');
    await posthorn.api.delivery(id, '10s');
    expect((await posthorn.api.post(`/v1/webhook-deliveries/${id}/redeliver`)).status).toBe(202);
    await until('it is sent again', async () => (await posthorn.api.attempts(id)).length === 2);
    expect(await posthorn.api.delivery(id, '10s')).toMatchObject({ status: 'succeeded', round: 2, attempt_count: 2 });
    await until('its workflow has closed', async () => (await workflowOf(id)) === 'closed');
  });

  it('what fails goes on in a workflow, at the time that the record says', async () => {
    const failing = await RecordingReceiver.start(
      (_, reply, count) => void reply.writeHead(count === 1 ? 500 : 200).end(),
    );
    await posthorn.api.createEndpoint(failing.url, ['express.failed'], { retry_waits_ms: [1_000] });
    const id = await publish('express.failed');
    await until('its workflow waits', async () => (await workflowOf(id)) === 'running');
    expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'retrying', attempt_count: 1 });
    await until('it is delivered', async () => (await posthorn.api.delivery(id)).status === 'succeeded');
    expect(failing.of(id).map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2']);
    await failing.stop();
  });

  it('neither a redelivery nor a start by hand makes a second request while the attempt is in flight', async () => {
    const held = new HeldAnswers();
    const slow = await RecordingReceiver.start(held.answer);
    await posthorn.api.createEndpoint(slow.url, ['express.held'], { timeout_ms: 30_000 });
    const id = await publish('express.held');
    await held.arrived();
    const again = await posthorn.api.post(`/v1/webhook-deliveries/${id}/redeliver`);
    expect(again.body).toMatchObject({ already_in_progress: true });
    const { workflow } = posthorn.core.temporal.client!;
    await workflow.start('deliver', { taskQueue: 'posthorn', workflowId: id, args: [{ deliveryId: id }] });
    await until('the workflow has to wait', async () => {
      const { phase } = await workflow.getHandle(id).query<{ phase: string }>('state');
      return phase === 'waiting';
    });
    held.release();
    expect(await posthorn.api.delivery(id, '10s')).toMatchObject({ status: 'succeeded' });
    await until('the workflow has seen it', async () => (await workflowOf(id)) === 'closed');
    expect(slow.of(id)).toHaveLength(1);
    await slow.stop();
  });

  it('endpoints that hang delay nobody else, and what else goes to them gets workflows', async () => {
    const held = new HeldAnswers();
    const hanging = await RecordingReceiver.start(held.answer);
    for (let n = 0; n < 6; n += 1) await posthorn.api.createEndpoint(`${hanging.url}/${n}`, ['express.hung']);
    await posthorn.api.createEndpoint(receiver.url, ['express.quick']);
    const events = Array.from({ length: 60 }, () => ({ type: 'express.hung', data: {} }));
    await posthorn.api.post('/v1/events/batch', { events });
    await held.arrived();
    const since = Date.now();
    const id = await publish('express.quick');
    expect(await posthorn.api.delivery(id, '10s')).toMatchObject({ status: 'succeeded' });
    expect(Date.now() - since).toBeLessThan(5_000);
    const late = await publish('express.hung');
    await until('it has a workflow', async () => (await workflowOf(late)) !== 'not_found');
    held.release();
    await hanging.stop();
  });

  it('a paused endpoint gets nothing until it is resumed', async () => {
    const { id: endpoint } = await posthorn.api.createEndpoint(receiver.url, ['express.paused']);
    await posthorn.api.post(`/v1/webhooks/subscriptions/${endpoint}/pause`);
    const id = await publish('express.paused');
    expect(await posthorn.api.delivery(id)).toMatchObject({ status: 'held', reason: 'endpoint_paused' });
    expect(await lease(id)).toBeNull();
    await posthorn.api.post(`/v1/webhooks/subscriptions/${endpoint}/resume`);
    await until('it is delivered', async () => (await posthorn.api.delivery(id)).status === 'succeeded');
    expect(receiver.of(id)).toHaveLength(1);
  });

  it('a rate limit holds', async () => {
    await posthorn.api.createEndpoint(receiver.url, ['express.limited'], { rate_limit_per_second: 5 });
    const events = Array.from({ length: 20 }, () => ({ type: 'express.limited', data: {} }));
    const { body } = await posthorn.api.post('/v1/events/batch', { events });
    const ids: string[] = body.data.map(
      (item: { event: { deliveries: { id: string }[] } }) => item.event.deliveries[0]!.id,
    );
    for (const id of ids)
      await until(`${id} is delivered`, async () => (await posthorn.api.delivery(id)).status === 'succeeded');
    const times = ids.map((id) => receiver.of(id)[0]!.at).sort((a, b) => a - b);
    expect(times.at(-1)! - times[0]!).toBeGreaterThan(3_000);
  });
});

async function leasedTo(holder: string): Promise<string> {
  const { core } = posthorn;
  const [result] = await core.events.publish(
    [
      {
        id: newId('evt_'),
        tenantId: 'default',
        type: 'express.leased',
        source: null,
        subject: null,
        apiVersion: null,
        data: '{}',
        createdAt: null,
        bodyHash: Buffer.from('hash'),
      },
    ],
    { leaseHolder: holder },
  );
  if (result?.kind !== 'accepted') throw new Error('not accepted');
  return result.deliveries[0]!.id;
}

describe('a lease', () => {
  it('of a process that died is turned into a workflow within seconds', async () => {
    await posthorn.api.createEndpoint(receiver.url, ['express.leased']);
    const id = await leasedTo('express/dead');
    await until('it is delivered', async () => (await posthorn.api.delivery(id)).status === 'succeeded', 10_000);
    expect(await workflowOf(id)).not.toBe('not_found');
    expect(receiver.of(id)).toHaveLength(1);
  });

  it('of a process that lives is left alone, also by a workflow that a person starts', async () => {
    const other = 'express/another';
    const { leases, db } = posthorn.core;
    const renewing = setInterval(() => void leases.renew(other), 500);
    await leases.renew(other);
    const id = await leasedTo(other);
    expect((await posthorn.api.post(`/v1/webhook-deliveries/${id}/redeliver`)).body).toMatchObject({
      already_in_progress: true,
    });
    await until('the sweeper would take it', async () => {
      const [row] = await db.query<{ due: boolean }[]>(
        `select sweep_after < now() - interval '2 s' as due from deliveries where id = $1`,
        [id],
      );
      return row!.due;
    });
    expect(receiver.of(id)).toHaveLength(0);
    clearInterval(renewing);
    await until(
      'it is delivered once its holder is dead',
      async () => (await posthorn.api.delivery(id)).status === 'succeeded',
      40_000,
    );
    expect(receiver.of(id)).toHaveLength(1);
  });

  it('of ours that got lost on its way to the lane is given back', async () => {
    const id = await leasedTo(posthorn.core.express!.leaseHolder!);
    await until('it is delivered', async () => (await posthorn.api.delivery(id)).status === 'succeeded', 15_000);
    expect(receiver.of(id)).toHaveLength(1);
  });
});
