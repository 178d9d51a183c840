import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startSampleReceiver, type SampleReceiver } from '../../examples/receivers/node/receiver.js';
import { buildAttemptRequest } from '../../src/delivery/attempt-request.js';
import { profiles, type ProfileName } from '../../src/domain/profiles.js';
import { generateSecret } from '../../src/security/signing-secret.js';
import { newId } from '../../src/security/new-id.js';

const secret = generateSecret();
let receiver: SampleReceiver;
let lines: string[];

beforeEach(async () => {
  lines = [];
  receiver = await startSampleReceiver({ port: 0, host: '127.0.0.1', secret, log: (line) => lines.push(line) });
});

afterEach(async () => {
  await receiver.stop();
});

interface Sending {
  profile?: ProfileName;
  id?: string;
  type?: string;
  data?: string;
  secrets?: string[];
  nowMs?: number;
  attemptNumber?: number;
  change?: (body: Buffer) => Buffer;
}

/** Sends what Posthorn would send. */
async function send(sending: Sending = {}) {
  const { id = newId('whd_'), type = 'invoice.paid', data = '{}', secrets = [secret], nowMs = Date.now() } = sending;
  const { envelope, signature, timeoutMs } = profiles[sending.profile ?? 'default'];
  const request = buildAttemptRequest({
    delivery: {
      id,
      // One event: the consumer of a CloudEvent sees only its id.
      eventId: id.replace('whd_', 'evt_'),
      tenantId: 'default',
      type,
      createdAt: new Date().toISOString(),
      apiVersion: null,
      source: null,
      subject: null,
      data,
    },
    endpoint: { url: receiver.url, envelope, signature, payload: 'full', headers: {}, timeoutMs },
    secrets,
    attemptNumber: sending.attemptNumber ?? 1,
    nowMs,
  });
  const body = request.body ?? Buffer.alloc(0);
  const response = await fetch(request.url, {
    method: 'POST',
    headers: request.headers,
    body: new Uint8Array(sending.change ? sending.change(body) : body),
    signal: AbortSignal.timeout(5_000),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const compact = (body: Buffer) => Buffer.from(JSON.stringify(JSON.parse(body.toString('utf8'))));
const control = (method: string, path: string, body?: string) =>
  fetch(new URL(path, receiver.url), { method, ...(body === undefined ? {} : { body }) });

describe('the sample receiver', () => {
  it('answers 200 to a delivery and has its effect once, however often it comes', async () => {
    const id = newId('whd_');
    for (const attemptNumber of [1, 2, 3]) expect((await send({ id, attemptNumber })).status).toBe(200);
    await Promise.all([send({ id, attemptNumber: 4 }), send({ id, attemptNumber: 5 })]);
    expect((await send()).status).toBe(200);
    expect(receiver.stats()).toMatchObject({ requests: 6, verified: 6, rejected: 0, side_effects: 2 });
    expect(receiver.stats().deliveries[id]).toEqual({ requests: 5, side_effects: 1 });
  });

  it('takes what an endpoint with the profile cloudevents gets', async () => {
    const id = newId('whd_');
    for (const attemptNumber of [1, 2]) {
      expect((await send({ profile: 'cloudevents', id, attemptNumber })).status).toBe(200);
    }
    expect((await send({ profile: 'cloudevents', secrets: [generateSecret()] })).status).toBe(401);
    expect(receiver.stats()).toMatchObject({ requests: 3, verified: 2, rejected: 1, side_effects: 1 });
    const key = `urn:posthorn:tenant:default ${id.replace('whd_', 'evt_')}`;
    expect(receiver.stats().deliveries).toEqual({ [key]: { requests: 2, side_effects: 1 } });
  });

  it('verifies the raw bytes: odd JSON passes, and any change of it does not', async () => {
    const data = '{ "n": 1.000, "s": "\\u0000\\ud800\u2028\u{1f4ef}",\n"n": 123456789012345678901234567890 }';
    expect((await send({ data })).status).toBe(200);
    expect((await send({ data, change: compact })).status).toBe(401);
    expect((await send({ change: (body) => Buffer.concat([body, Buffer.from(' ')]) })).status).toBe(401);
  });

  it('rejects before it parses', async () => {
    expect((await send({ change: () => Buffer.from('{not json') })).status).toBe(401);
    const unsigned = await fetch(receiver.url, { method: 'POST', body: '{"delivery_id":"whd_1","type":"a"}' });
    expect(unsigned.status).toBe(401);
    expect(receiver.stats()).toMatchObject({ verified: 0, rejected: 2, side_effects: 0, deliveries: {} });
    expect(lines).toEqual(['rejected a request: no_match', 'rejected a request: header_missing']);
  });

  it('rejects a timestamp more than 300 s away', async () => {
    expect((await send({ nowMs: Date.now() - 302_000 })).status).toBe(401);
    expect((await send({ nowMs: Date.now() + 302_000 })).status).toBe(401);
    expect((await send({ nowMs: Date.now() - 290_000 })).status).toBe(200);
  });

  it('accepts a delivery during a rotation, on either side', async () => {
    const fresh = generateSecret();
    expect((await send({ secrets: [fresh, secret] })).status).toBe(200);
    expect((await send({ secrets: [fresh] })).status).toBe(401);
    receiver.setSecrets([secret, fresh]);
    expect((await send({ secrets: [fresh] })).status).toBe(200);
  });

  it('answers a challenge with the challenge as text, if it is signed', async () => {
    const challenge = 'abcdefghijklmnopqrstuvwxyz0123456789-_ABCDE';
    const verification = { type: 'webhook.verification', data: JSON.stringify({ challenge }) };
    const answer = await send(verification);
    expect(answer).toMatchObject({ status: 200, text: challenge });
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain/);
    expect((await send({ ...verification, secrets: [generateSecret()] })).status).toBe(401);
    expect((await send({ type: 'webhook.ping' })).status).toBe(200);
    expect(receiver.stats().side_effects).toBe(0);
  });

  it('refuses a body beyond 1 MiB', async () => {
    expect((await send({ data: `"${'x'.repeat(1024 * 1024)}"` })).status).toBe(413);
  });

  it('rejects everything until it has a secret', async () => {
    receiver.setSecrets([]);
    expect((await send()).status).toBe(401);
  });
});

describe("the sample receiver's controls", () => {
  it('show what arrived', async () => {
    const id = newId('whd_');
    await send({ id, data: '{"invoice_id":"inv_42"}' });
    const response = await control('GET', '/stats');
    expect(await response.json()).toEqual({
      requests: 1,
      verified: 1,
      rejected: 0,
      side_effects: 1,
      deliveries: { [id]: { requests: 1, side_effects: 1 } },
      newest: { inv_42: { type: 'invoice.paid', at: expect.any(String) as string } },
    });
  });

  it.each([
    ['JSON', (one: string, two: string) => JSON.stringify({ secrets: [one, two] })],
    ['plain text', (one: string, two: string) => `${one}\n${two}\n`],
  ])('replace the secrets, as %s', async (_, format) => {
    const [one, two] = [generateSecret(), generateSecret()];
    const response = await control('PUT', '/secrets', format(one, two));
    expect(await response.json()).toEqual({ secrets: 2 });
    expect((await send({ secrets: [one] })).status).toBe(200);
    expect((await send({ secrets: [two] })).status).toBe(200);
    expect((await send()).status).toBe(401);
    expect(lines.join()).not.toContain('whsec_');
  });

  it.each([
    ['down', 503, null],
    ['error', 500, null],
    ['gone', 410, null],
    ['busy', 429, '2'],
  ])('make it behave badly: %s', async (mode, status, retryAfter) => {
    expect((await control('PUT', '/mode', JSON.stringify({ mode }))).status).toBe(200);
    const answer = await send();
    expect(answer.status).toBe(status);
    expect(answer.headers.get('retry-after')).toBe(retryAfter);
    await control('PUT', '/mode', '{"mode":"ok"}');
    expect((await send()).status).toBe(200);
    expect(receiver.stats()).toMatchObject({ requests: 2, verified: 1, side_effects: 1 });
  });

  it('make the handshake fail as well', async () => {
    await control('PUT', '/mode', '{"mode":"down"}');
    const headers = { 'WebHook-Request-Origin': 'hooks.example.com' };
    const down = await fetch(receiver.url, { method: 'OPTIONS', headers });
    expect(down.status).toBe(503);
    expect(down.headers.get('webhook-allowed-origin')).toBeNull();
    await control('PUT', '/mode', '{"mode":"ok"}');
    const up = await fetch(receiver.url, { method: 'OPTIONS', headers });
    expect(up.headers.get('webhook-allowed-origin')).toBe('hooks.example.com');
  });

  it('make it hang, and it still stops', async () => {
    receiver.setMode('hang');
    const hanging = new Promise((resolve) => {
      httpRequest(receiver.url, { method: 'POST' }).on('error', resolve).end('{}');
    });
    await expect.poll(() => receiver.stats().requests).toBe(1);
    await receiver.stop();
    expect(await hanging).toBeInstanceOf(Error);
    receiver = await startSampleReceiver({ port: 0, host: '127.0.0.1', log: () => {} });
  });

  it.each([
    ['PUT', '/mode', '{"mode":"asleep"}', 400],
    ['PUT', '/mode', 'x', 400],
    ['PUT', '/secrets', '{"secrets":"whsec_x"}', 400],
    ['PUT', '/secrets', '{', 400],
    ['GET', '/hook', undefined, 404],
    ['GET', '/', undefined, 404],
    ['POST', '/stats', '', 404],
  ])('refuse what makes no sense: %s %s %s', async (method, path, body, status) => {
    expect((await control(method, path, body)).status).toBe(status);
  });
});
