import { expect, it } from 'vitest';
import { createLogger } from '../../../src/telemetry/logger.js';
import { rawRequest, startApi } from '../../support/api.js';
import { testKey, testKeyRing } from '../../support/posthorn.js';

it('logs tell what happened, and hold no secret, key, payload or header', async () => {
  let log = '';
  const posthorn = await startApi({
    log: createLogger('trace', { write: (line: string) => void (log += line) }),
  });
  const { api, port } = posthorn;
  const payload = 'payload-that-nobody-may-read';
  const idempotencyKey = 'idempotency-key-that-stays-out';
  const { id, secret } = await api.createEndpoint('http://127.0.0.1:9/hook?token=url-token-stays-out', ['*']);
  const header = 'header-value-that-stays-out';
  const path = `/v1/webhooks/subscriptions/${id}`;
  await api.call('PATCH', path, { headers: { Authorization: `Bearer ${header}` } });
  await api.call('PATCH', path, { headers: { 'X-A': header, Host: header } });
  await api.call('PATCH', path, { credentials: { type: 'header', name: 'X-Key', value: header } });
  await api.call('PATCH', path, { credentials: { type: 'basic', username: header } });
  await api.call('PATCH', path, { url: `http://user:${header}@127.0.0.1:9/hook?token=url-token-stays-out` });
  await api.call('PATCH', path, { client_certificate: { certificate: header, private_key: header } });
  const rotated = (await api.post(`${path}/secrets`)).body.secret as string;
  await api.post(`${path}/test`, { type: 'logged.event', data: payload });
  const event = { type: 'logged.event', data: { payload }, id: 'logged' };
  await api.post('/v1/events', event, { 'idempotency-key': idempotencyKey });
  await api.post('/v1/events/batch', { events: [event, { ...event, id: 'logged-2' }] });
  await api.post('/v1/events', `{"type":"logged.event","data":{"payload":"${payload}"`);
  await api.post('/v1/events', { ...event, [payload]: payload });
  await api.get(`/v1/webhook-deliveries?event_id=logged&status=${payload}`);
  await api.withKey('wrong-key-that-stays-out-0123').get('/v1/webhook-deliveries');
  await rawRequest(port, {
    method: 'GET',
    path: `/v1/webhook-deliveries?x=${payload}`,
    headers: { 'x-secret': payload },
  });

  // Our own faults are logged: with the statement's name for it, and without its parameters.
  await posthorn.sql('alter table events rename column data to renamed');
  await posthorn.sql('alter table endpoint_secrets rename column sealed to renamed');
  const failed = [
    await api.post('/v1/events', { ...event, id: 'logged-3' }, { 'idempotency-key': `${idempotencyKey}-3` }),
    await api.post('/v1/webhooks/subscriptions', {
      url: 'http://127.0.0.1:9/?token=url-token-stays-out',
      events: ['*'],
      description: payload,
      headers: { 'X-A': header },
    }),
    await api.post(`${path}/secrets`, { secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}` }),
    await api.post(`/v1/events?${payload}=1`, event),
  ];
  expect(failed.map(({ status }) => status)).toEqual([500, 500, 500, 422]);
  const [row] = await posthorn.sql<{ renamed: string }>('select renamed from endpoint_secrets where endpoint_id = $1', [
    id,
  ]);
  await posthorn.stop();

  const lines = log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { msg: string; request_id?: string; path?: string; err?: { type: string } });
  const failures = lines.filter(({ msg }) => msg === 'request failed');
  expect(failures).toHaveLength(3);
  expect(failures[0]).toMatchObject({
    path: '/v1/events',
    method: 'POST',
    err: { type: 'QueryFailedError', code: '42703' },
  });
  expect(failed[0]!.body.detail).toContain(failures[0]!.request_id);

  const bare = secret.replace('whsec_', '');
  const forbidden = {
    payload,
    idempotencyKey,
    header,
    rotated: rotated.replace('whsec_', ''),
    imported: Buffer.alloc(32, 7).toString('base64'),
    secret,
    bare,
    testKey,
    url: 'url-token-stays-out',
    sealed: row!.renamed,
  };
  for (const [name, text] of Object.entries({
    ...forbidden,
    ring: testKeyRing.slice(3),
    wrong: 'wrong-key-that-stays-out',
  }))
    expect(log.includes(text), `${name} is in the log`).toBe(false);
});
