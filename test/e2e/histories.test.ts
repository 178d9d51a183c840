import { afterAll, beforeAll, expect, it } from 'vitest';
import { readHistories } from '../support/histories.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;
beforeAll(async () => {
  posthorn = await startPosthorn({
    extra: { POSTHORN_VERIFICATION_REQUIRED: 'on', POSTHORN_DELIVERY_RETRY_WAITS: '100ms,100ms' },
  });
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  await receiver.stop();
  await posthorn.stop();
});

it('no secret, header, payload or answer is in any history', async () => {
  const { api, core, namespace } = posthorn;
  const stays = {
    header: 'header-value-that-stays-out',
    payload: 'payload-that-stays-out',
    answer: 'answer-that-stays-out',
    imported: `whsec_${Buffer.alloc(32, 9).toString('base64')}`,
  };
  let challenge = '';
  receiver.answer = (request, reply) => {
    const { type, data } = JSON.parse(request.body.toString()) as { type: string; data: { challenge?: string } };
    challenge = data.challenge ?? challenge;
    if (type === 'webhook.verification') return void reply.writeHead(200).end(challenge);
    reply.writeHead(request.path === '/bad' ? 500 : 200, { 'x-answer': stays.answer }).end(stays.answer);
  };
  const endpoints = await Promise.all(
    ['good', 'bad'].map((name) =>
      api.createEndpoint(`${receiver.url}/${name}`, [`${name}.*`], {
        secret: name === 'good' ? stays.imported : undefined,
        headers: { Authorization: `Bearer ${stays.header}` },
      }),
    ),
  );
  for (const { id } of endpoints)
    await until(
      'it is active',
      async () => (await api.get(`/v1/webhooks/subscriptions/${id}`)).body.status === 'active',
    );
  const rotated = (await api.post(`/v1/webhooks/subscriptions/${endpoints[0]!.id}/secrets`)).body.secret as string;
  const deliveries = [
    await api.publish('good.one', { text: stays.payload }),
    await api.publish('bad.one', { text: stays.payload }),
  ].map((event) => event.deliveries[0]!.id);
  for (const id of deliveries)
    await until('it is closed', async () =>
      ['succeeded', 'failed'].includes((await api.delivery(id)).status as string),
    );

  const client = core.temporal.client!;
  const ids = [
    ...deliveries,
    ...endpoints.map(({ id }) => `endpoint-health/${id}`),
    `dead-letter-queue/${endpoints[1]!.id}`,
  ];
  const text = await readHistories(client, ids);
  expect(namespace).toMatch(/^test-/);
  // The check sees what it should: ids are there.
  for (const id of ids) expect(text).toContain(id.split('/').at(-1));
  const forbidden = {
    ...stays,
    challenge,
    rotated,
    ...Object.fromEntries(endpoints.map(({ secret }, index) => [`secret ${index}`, secret])),
    bare: rotated.replace('whsec_', ''),
  };
  for (const [name, value] of Object.entries(forbidden)) expect(text.includes(value), name).toBe(false);
});
