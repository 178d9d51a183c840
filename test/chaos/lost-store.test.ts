import { afterAll, beforeAll, expect, it } from 'vitest';
import { createNamespace, RecordingReceiver, startPosthorn, until } from '../support/posthorn.js';

let receiver: RecordingReceiver;
beforeAll(async () => {
  receiver = await RecordingReceiver.start((_, reply) => void reply.writeHead(500).end());
});
afterAll(() => receiver.stop());

const extra = { POSTHORN_DELIVERY_RETRY_WAITS: '100ms' };

it('an endpoint that is about to be disabled and a letter that is about to expire outlive the loss of Temporal’s store', async () => {
  const before = await startPosthorn({ extra });
  const { databaseUrl } = before;
  const { id } = await before.api.createEndpoint(receiver.url, ['lost.store']);
  const letter = (await before.api.publish('lost.store')).deliveries[0]!.id;
  await until('it is given up', async () => (await before.api.delivery(letter)).status === 'failed');
  await before.core.db.query(
    `update endpoints set failing_since = now() - interval '7 days' + interval '25 s', health_version = health_version + 1 where id = $1`,
    [id],
  );
  await before.core.announcer.endpointChanged(id);
  await until('its owner was warned', async () => {
    const { data } = (await before.api.get(`/v1/notices?endpoint_id=${id}&type=endpoint.failing`)).body;
    return data.length > 0;
  });
  await before.core.db.query(`update dead_letters set expires_at = now() + interval '5 s' where delivery_id = $1`, [
    letter,
  ]);
  await before.stop();

  // Another namespace is another store: nothing of what ran is there.
  const after = await startPosthorn({ extra, databaseUrl, namespace: await createNamespace() });
  try {
    await until(
      'it is disabled',
      async () => (await after.api.get(`/v1/webhooks/subscriptions/${id}`)).body.status === 'disabled',
      60_000,
    );
    await until(
      'the letter expires',
      async () => (await after.api.get(`/v1/dead-letters/${letter}.1`)).body.resolution === 'expired',
      90_000,
    );
    const types = (await after.api.get(`/v1/notices?endpoint_id=${id}`)).body.data.map(
      ({ type }: { type: string }) => type,
    );
    expect(types.filter((type: string) => type === 'endpoint.disabled')).toHaveLength(1);
    expect(types.filter((type: string) => type === 'endpoint.failing')).toHaveLength(1);
  } finally {
    await after.stop();
  }
});
