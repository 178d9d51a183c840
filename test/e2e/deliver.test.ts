import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Stripe } from 'stripe';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

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

describe('an accepted event', () => {
  it('arrives signed, with its data byte for byte', async () => {
    const { api } = posthorn;
    const { secret } = await api.createEndpoint(`${receiver.url}/hook?a=%20b`, ['invoice.*']);
    const data = '{"b":1.0,  "a":12345678901234567890, "s":"\\u0041\\u2028"}';
    const answer = await api.post('/v1/events', `{"type":"invoice.paid","data":${data}}`);
    expect(answer.status).toBe(202);
    const [{ id }] = answer.body.deliveries;
    expect(await api.delivery(id, '10s')).toMatchObject({
      status: 'succeeded',
      reason: 'delivered',
      attempt_count: 1,
      last_status_code: 200,
    });
    const [request] = receiver.of(id);
    expect(request).toBeDefined();
    expect(request!.path).toBe('/hook?a=%20b');
    expect(request!.body.toString()).toContain(`"data":${data}}`);
    expect(request!.headers['webhook-attempt']).toBe('1');
    expect(request!.headers['webhook-event-id']).toBe(answer.body.id);
    const stripe = new Stripe('sk_test_x');
    expect(stripe.webhooks.constructEvent(request!.body, request!.headers['webhook-signature']!, secret)).toMatchObject(
      { delivery_id: id },
    );
  });

  it('costs exactly six history events when the first attempt succeeds', async () => {
    const { api, core, namespace } = posthorn;
    await api.createEndpoint(`${receiver.url}/hook`, ['six.events']);
    const { deliveries } = await api.publish('six.events');
    const id = deliveries[0]!.id;
    await api.delivery(id, '10s');
    const history = await until('the workflow has closed', async () => {
      const found = await core.temporal.client!.workflow.getHandle(id).fetchHistory();
      return (found.events?.length ?? 0) >= 6 && found;
    });
    expect(namespace).toMatch(/^test-/);
    expect(history.events).toHaveLength(6);
  });
});
