import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
  await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['*']);
});
afterAll(() => posthorn.stop());

async function newDelivery(): Promise<string> {
  const { deliveries } = await posthorn.api.publish('waited.for');
  return deliveries[0]!.id;
}

async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const started = performance.now();
  const result = await work;
  return [result, performance.now() - started];
}

const close = (id: string, status: string) =>
  posthorn.sql('update deliveries set status = $2, sweep_after = null, next_attempt_at = null where id = $1', [
    id,
    status,
  ]);

describe('?wait=', () => {
  it.each(['succeeded', 'failed', 'cancelled'])('answers at once when the delivery is %s', async (status) => {
    const id = await newDelivery();
    await close(id, status);
    const [delivery, ms] = await timed(posthorn.api.delivery(id, '30s'));
    expect(delivery.status).toBe(status);
    expect(ms).toBeLessThan(1_000);
  });

  it('answers when the delivery is closed', async () => {
    const id = await newDelivery();
    const waiting = timed(posthorn.api.delivery(id, '30s'));
    await posthorn.api.post(`/v1/webhook-deliveries/${id}/cancel`);
    const [delivery, ms] = await waiting;
    expect(delivery).toMatchObject({ status: 'cancelled', reason: 'cancelled_by_request' });
    expect(ms).toBeLessThan(5_000);
  });

  it.each(['pending', 'retrying', 'held'])('answers after the time while the delivery is %s', async (status) => {
    const id = await newDelivery();
    await posthorn.sql('update deliveries set status = $2 where id = $1', [id, status]);
    const [delivery, ms] = await timed(posthorn.api.delivery(id, '600ms'));
    expect(delivery.status).toBe(status);
    expect(ms).toBeGreaterThan(550);
    expect(ms).toBeLessThan(3_000);
  });

  it.each(['0s', '1ms', '0.5s'])('takes %s', async (wait) => {
    expect((await posthorn.api.delivery(await newDelivery(), wait)).status).toBe('pending');
  });

  it('does not keep a stopping process', async () => {
    const own = await startApi({ databaseUrl: posthorn.databaseUrl });
    const id = await newDelivery();
    const waiting = own.api.delivery(id, '60s');
    // Answered only after the first look: the request has arrived by then.
    await own.api.delivery(id, '300ms');
    const [, ms] = await timed(own.stop());
    expect((await waiting).status).toBe('pending');
    expect(ms).toBeLessThan(10_000);
  });
});
