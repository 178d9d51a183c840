import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingReceiver, type RunningPosthorn, startPosthorn } from '../support/posthorn.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;

beforeAll(async () => {
  posthorn = await startPosthorn({ extra: { POSTHORN_DELIVERY_RETRY_WAITS: '300ms,300ms' } });
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  await receiver.stop();
  await posthorn.stop();
});

const put = (name: string, body: object) => posthorn.api.call('PUT', `/v1/event-types/${name}`, body);
const endpoint = (api_version: string, events: string[], more: object = {}) =>
  posthorn.api.createEndpoint(`${receiver.url}/${api_version}`, events, { api_version, ...more });

/** What came of the first delivery to this endpoint, and the bodies that it got. */
async function delivered(event: { deliveries: { id: string; endpoint_id: string }[] }, endpointId: string) {
  const { id } = event.deliveries.find((one) => one.endpoint_id === endpointId)!;
  const delivery = await posthorn.api.delivery(id, '10s');
  const bodies = receiver.of(id).map(({ body }) => body.toString());
  return { id, delivery, bodies, data: bodies[0]?.replace(/^.*?"data":/s, '').slice(0, -1) };
}

const versions = (expression: string) => [
  {
    version: '2025-01-31',
    schema: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
  },
  {
    version: '2026-01-31',
    schema: { type: 'object', required: ['amount'] },
    examples: [{ id: 1, amount: { value: 5 } }],
    conversions: { '2025-01-31': expression },
  },
];

describe('a type with two versions', () => {
  const data = '{ "id":12345678901234567890, "amount":{"value":1.50,  "s":"\\u0041"} }';

  it('comes to two pinned endpoints at once: byte for byte, and converted', async () => {
    await put('invoice.paid', { versions: versions('{"id": id, "amount": amount.value}') });
    const newest = await endpoint('2026-06-30', ['invoice.paid']);
    const older = await endpoint('2025-12-31', ['invoice.paid']);
    const { body: event } = await posthorn.api.post('/v1/events', `{"type":"invoice.paid","data":${data}}`);
    expect(event.api_version).toBe('2026-01-31');
    const [exact, converted] = [await delivered(event, newest.id), await delivered(event, older.id)];
    expect(exact.data).toBe(data);
    expect(JSON.parse(exact.bodies[0]!)).toMatchObject({ api_version: '2026-01-31' });
    expect(converted.data).toBe('{"id":12345678901234567890,"amount":1.5}');
    expect(JSON.parse(converted.bodies[0]!)).toMatchObject({ api_version: '2025-01-31' });
    // An event of the older version goes to both as it is.
    const old = await posthorn.api.post('/v1/events', {
      type: 'invoice.paid',
      api_version: '2025-01-31',
      data: { amount: 7 },
    });
    for (const { id } of [newest, older]) expect((await delivered(old.body, id)).data).toBe('{"amount":7}');
  });

  it('has the same bytes at every attempt, whatever becomes of the catalogue', async () => {
    await put('order.placed', { versions: versions('{"amount": amount.value}') });
    const { id } = await endpoint('2025-01-31', ['order.placed']);
    receiver.answer = (_, reply, count) => {
      if (count > 0)
        void put('order.placed', { versions: versions('{"amount": 0}') }).then(() => reply.writeHead(500).end());
    };
    const event = await posthorn.api.publish('order.placed', { amount: { value: 9 } });
    const { delivery, bodies } = await delivered(event, id);
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    expect(delivery).toMatchObject({ status: 'failed', attempt_count: 3 });
    expect(bodies).toHaveLength(3);
    expect(new Set(bodies).size).toBe(1);
    expect(bodies[0]).toContain('"data":{"amount":9}}');
  });

  it('fails visibly where its conversion fails, and never goes out in another version', async () => {
    await put('order.failed', { versions: versions('{"amount": amount.value}') });
    await put('order.looped', {
      versions: versions('amount.loop ? ($f := function($x){ $f($x) }; $f(1)) : {"amount": amount.value}'),
    });
    const quick = await endpoint('2026-01-31', ['order.*'], { filter: { amount: { $exist: true } } });
    for (const [type, why] of [
      ['order.failed', /does not fit its schema: \/amount must be number/],
      ['order.looped', /conversion to 2025-01-31 failed/],
    ] as const) {
      const { id } = await endpoint('2025-01-31', [type]);
      const event = await posthorn.api.publish(type, { amount: { value: 'nine', loop: true } });
      const { id: deliveryId, delivery, bodies } = await delivered(event, id);
      expect(bodies).toEqual([]);
      expect(delivery).toMatchObject({ status: 'failed', reason: 'attempts_exhausted', attempt_count: 3 });
      const attempts = await posthorn.api.attempts(deliveryId);
      for (const attempt of attempts)
        expect(attempt).toMatchObject({ error_code: 'config_invalid', status_code: null });
      expect(delivery.last_error).toMatch(why);
      expect(delivery.last_error).not.toContain('nine');
      expect((await delivered(event, quick.id)).delivery.status).toBe('succeeded');
    }
  });
});

describe('a thin type', () => {
  it('delivers only what its pointers name, exactly as published', async () => {
    await put('card.charged', { payload: 'thin', pointers: ['/id', '/card/last4'] });
    const { id } = await endpoint('newest', ['card.charged']);
    const cloud = await endpoint('newest', ['card.charged'], { profile: 'cloudevents' });
    const data = '{"id": 12345678901234567890, "card":{"number":"4242424242424242","last4":"\\u0034242"}, "x":1}';
    const { body: event } = await posthorn.api.post('/v1/events', `{"type":"card.charged","data":${data}}`);
    const thin = '{"id":12345678901234567890,"card":{"last4":"\\u0034242"}}';
    expect((await delivered(event, id)).data).toBe(thin);
    expect((await delivered(event, cloud.id)).bodies[0]).toContain(`"data":${thin}}`);
  });

  it('is cut after it was converted, by what may leave of the older version', async () => {
    await put('card.shown', {
      payload: 'thin',
      pointers: ['/id'],
      versions: [
        { version: '2025-01-31', pointers: ['/card_id'] },
        {
          version: '2026-01-31',
          examples: [{ id: 1 }],
          conversions: { '2025-01-31': '{"card_id": id, "secret": secret}' },
        },
      ],
    });
    const { id } = await endpoint('2025-01-31', ['card.shown']);
    const event = await posthorn.api.publish('card.shown', { id: 'c1', secret: 's' });
    expect((await delivered(event, id)).data).toBe('{"card_id":"c1"}');
  });
});

describe('pinning', () => {
  it('is by default to the newest version, can be tried beforehand, and counts from the next event', async () => {
    await put('chain.made', {
      versions: [
        { version: '2024-01-31' },
        { version: '2025-01-31', examples: [{ b: 1 }], conversions: { '2024-01-31': '{"a": b}' } },
        { version: '2026-01-31', examples: [{ c: 1 }], conversions: { '2025-01-31': '{"b": c}' } },
      ],
    });
    const { api } = posthorn;
    const { id } = await api.createEndpoint(`${receiver.url}/pin`, ['chain.made']);
    const path = `/v1/webhooks/subscriptions/${id}`;
    expect((await api.get(path)).body.api_version).toBe('2026-01-31');
    const preview = await api.post(`${path}/api-version/preview`, { api_version: '2024-06-30' });
    expect(preview.body).toEqual({
      from: '2026-01-31',
      to: '2024-06-30',
      unchanged: [],
      changes: [
        {
          type: 'chain.made',
          from_version: '2026-01-31',
          to_version: '2024-01-31',
          sample: 'example',
          before: { data: { c: 1 }, problem: null },
          after: { data: { a: 1 }, problem: null },
        },
      ],
    });
    expect((await api.get(path)).body.api_version).toBe('2026-01-31');
    await api.call('PATCH', path, { api_version: '2024-06-30' });
    const event = await api.publish('chain.made', { c: 'x' });
    expect((await delivered(event, id)).data).toBe('{"a":"x"}');
    await api.call('PATCH', path, { api_version: null });
    expect((await api.get(path)).body.api_version).toBe('2026-01-31');
    expect((await api.call('PATCH', path, { api_version: '2024-13-01' })).body).toMatchObject({ field: 'api_version' });
    expect((await api.post(`${path}/api-version/preview`, { api_version: 'soon' })).body).toMatchObject({
      field: 'api_version',
    });
  });
});
