import { createHmac } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { languages, ReceiverProcess } from './receiver-process.js';
import {
  envelope,
  formats,
  newDeliveryId,
  newSecret,
  sign,
  unixNow,
  type Format,
  type Sent,
  type Signing,
} from './signing.js';

const current = newSecret();
const previous = newSecret();
const stranger = newSecret();

interface Stats {
  readonly requests: number;
  readonly verified: number;
  readonly rejected: number;
  readonly side_effects: number;
  readonly deliveries: Record<string, { requests: number; side_effects: number }>;
  readonly newest: Record<string, { type: string; at: string }>;
}

/** What is done to a request that is right, and the answer that it must get. */
interface Case {
  readonly name: string;
  readonly signing?: Partial<Signing>;
  /** Signed so many seconds from now. */
  readonly shiftSeconds?: number;
  /** Changes the body after it was signed. */
  readonly tamper?: (body: Buffer) => Buffer;
  readonly headers?: (right: Record<string, string>, body: Buffer) => Record<string, string>;
  /** Signed as it stands. */
  readonly body?: Buffer;
  readonly format?: Format;
  readonly status: 200 | 400 | 401 | 413;
}

const without = (name: string) => (right: Record<string, string>) =>
  Object.fromEntries(Object.entries(right).filter(([key]) => key !== name));
const instead = (name: string, value: string) => (right: Record<string, string>) => ({ ...right, [name]: value });
const signature = (change: (value: string) => string) => (right: Record<string, string>) =>
  instead('Webhook-Signature', change(right['Webhook-Signature'] ?? ''))(right);
const insideText = (bytes: readonly number[]) =>
  Buffer.concat([Buffer.from('{"delivery_id":"whd_1","type":"a'), Buffer.from(bytes), Buffer.from('","data":{}}')]);

const cases: readonly Case[] = [
  { name: 'one signature, by the current secret', status: 200 },
  { name: 'the previous secret alone', signing: { secrets: [previous] }, status: 200 },
  { name: 'both live secrets', signing: { secrets: [current, previous] }, status: 200 },
  { name: 'several signatures, ours last', signing: { secrets: [stranger, newSecret(), current] }, status: 200 },
  { name: 'several signatures, ours first', signing: { secrets: [current, newSecret(), stranger] }, status: 200 },
  { name: 'a timestamp 290 s ago', shiftSeconds: -290, status: 200 },
  { name: 'a timestamp 290 s ahead', shiftSeconds: 290, status: 200 },
  {
    name: 'schemes to come beside ours',
    format: 'default',
    headers: signature((value) => `${value},v2=abc`),
    status: 200,
  },
  {
    name: 'schemes to come beside ours',
    format: 'standard',
    headers: signature((value) => `v1a,b64 v2 ${value}`),
    status: 200,
  },

  { name: 'a body with one byte more', tamper: (body) => Buffer.concat([body, Buffer.from(' ')]), status: 401 },
  { name: 'a body with one bit changed', tamper: flipLastBit, status: 401 },
  { name: 'a body that is empty now', tamper: () => Buffer.alloc(0), status: 401 },
  { name: 'a body that is not UTF-8 any more', tamper: () => insideText([0xff]), status: 401 },
  { name: 'a secret that is not ours', signing: { secrets: [stranger] }, status: 401 },
  { name: 'several secrets, none of them ours', signing: { secrets: [stranger, newSecret()] }, status: 401 },
  { name: 'a timestamp 310 s ago', shiftSeconds: -310, status: 401 },
  { name: 'a timestamp 310 s ahead', shiftSeconds: 310, status: 401 },
  { name: 'no signature header', headers: without('Webhook-Signature'), status: 401 },
  { name: 'an empty key', signing: { secrets: ['whsec_'] }, format: 'standard', status: 401 },
  {
    name: 'a fresh timestamp on an old signature',
    format: 'default',
    shiftSeconds: -1_000,
    headers: signature((value) => value.replace(/^t=\d+/, `t=${unixNow()}`)),
    status: 401,
  },
  {
    name: 'a fresh timestamp on an old signature',
    format: 'standard',
    shiftSeconds: -1_000,
    headers: (right) => instead('Webhook-Timestamp', String(unixNow()))(right),
    status: 401,
  },
  { name: 'another id than was signed', format: 'standard', headers: instead('Webhook-Id', 'whd_other'), status: 401 },
  { name: 'no id', format: 'standard', headers: without('Webhook-Id'), status: 401 },
  { name: 'no timestamp', format: 'standard', headers: without('Webhook-Timestamp'), status: 401 },
  {
    name: 'the key of the other format',
    format: 'standard',
    headers: (right, body) => {
      const content = `${right['Webhook-Id']}.${right['Webhook-Timestamp']}.${body.toString()}`;
      return instead(
        'Webhook-Signature',
        `v1,${createHmac('sha256', current).update(content).digest('base64')}`,
      )(right);
    },
    status: 401,
  },
  ...[
    '',
    'garbage',
    '=',
    ',',
    't=',
    't=,v1=',
    'v1,',
    'v1, v1, v1,',
    't=1,v1',
    '\u00ff\u00fe',
    'v1=',
    `v1,${'A'.repeat(4_000)}`,
  ].map((value): Case => ({
    name: `the signature '${value.slice(0, 12)}'`,
    headers: instead('Webhook-Signature', value),
    status: 401,
  })),
  ...['NaN', '-1', '+1', '1e9', '', '9'.repeat(30), '\u00b2'].map((value): Case => ({
    name: `the timestamp '${value.slice(0, 12)}'`,
    headers: (right) =>
      signature((text) => text.replace(/^t=\d+/, `t=${value}`))(instead('Webhook-Timestamp', value)(right)),
    status: 401,
  })),
  {
    name: 'a signature cut short',
    headers: signature((value) => value.slice(0, -1)),
    status: 401,
  },

  { name: 'a signed body that is not UTF-8', body: insideText([0xc3, 0x28]), status: 400 },
  { name: 'a signed body with half a surrogate in UTF-8', body: insideText([0xed, 0xa0, 0x80]), status: 400 },
  { name: 'a signed body in UTF-16', body: Buffer.from('{"delivery_id":"whd_1","type":"a"}', 'utf16le'), status: 400 },
  { name: 'a signed body that is not JSON', body: Buffer.from('{not json'), status: 400 },
  { name: 'a signed empty body', body: Buffer.alloc(0), status: 400 },
  { name: 'a signed list', body: Buffer.from('[]'), status: 400 },
  { name: 'a signed null', body: Buffer.from('null'), status: 400 },
  { name: 'a signed body without a type', body: Buffer.from('{"delivery_id":"whd_1","data":{}}'), status: 400 },
  { name: 'a signed body with nothing to deduplicate on', body: Buffer.from('{"type":"a","data":{}}'), status: 400 },
  {
    name: 'a signed CloudEvent without a source',
    body: Buffer.from('{"specversion":"1.0","id":"1","type":"a"}'),
    status: 400,
  },
  { name: 'more than 1 MiB', body: Buffer.alloc(1024 * 1024 + 1, 0x20), status: 413 },
];

function flipLastBit(body: Buffer): Buffer {
  const changed = Buffer.from(body);
  changed.writeUInt8(changed.readUInt8(changed.length - 1) ^ 1, changed.length - 1);
  return changed;
}

const verdicts = { 200: 'accepts', 400: 'refuses', 401: 'rejects', 413: 'refuses' } as const;

for (const language of languages) {
  const name = `the ${language.name} receiver${language.missing === null ? '' : ` (${language.missing})`}`;
  describe.skipIf(language.missing !== null)(name, () => {
    let receiver: ReceiverProcess;

    beforeAll(async () => {
      receiver = new ReceiverProcess(language);
      await receiver.start([current, previous]);
    }, 300_000);

    afterAll(async () => {
      await receiver.stop();
    });

    async function post(headers: Record<string, string>, body: Buffer) {
      const response = await fetch(receiver.url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: new Uint8Array(body),
        signal: AbortSignal.timeout(10_000),
      });
      return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
    }

    /** Sends what Posthorn would send, under a fresh timestamp. */
    async function deliver(format: Format, sent: Sent, secrets: readonly string[] = [current]) {
      const { body, key } = envelope(format, sent);
      return { key, ...(await post(sign(format, body, { secrets }), body)) };
    }

    async function stats(): Promise<Stats> {
      const response = await fetch(new URL('/stats', receiver.url), { signal: AbortSignal.timeout(10_000) });
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      return (await response.json()) as Stats;
    }

    describe.each(formats)('in the %s format', (format) => {
      it.each(
        cases
          .filter((one) => (one.format ?? format) === format)
          .map((one) => [verdicts[one.status], one.name, one] as const),
      )(
        '%s %s',
        async (_, __, { signing, shiftSeconds = 0, tamper, headers, body = envelope(format).body, status }) => {
          const before = await stats();
          const right = sign(format, body, { secrets: [current], at: unixNow() + shiftSeconds, ...signing });
          const answer = await post(headers?.(right, body) ?? right, tamper?.(body) ?? body);
          expect(answer).toMatchObject({ status });
          const after = await stats();
          expect({
            requests: after.requests - before.requests,
            verified: after.verified - before.verified,
            rejected: after.rejected - before.rejected,
            side_effects: after.side_effects - before.side_effects,
          }).toEqual({
            requests: 1,
            verified: status === 200 || status === 400 ? 1 : 0,
            rejected: status === 401 ? 1 : 0,
            side_effects: status === 200 ? 1 : 0,
          });
        },
      );

      it('handles a delivery once, however often it comes', async () => {
        const before = await stats();
        const id = newDeliveryId();
        const at = new Date().toISOString();
        for (let i = 0; i < 3; i++) expect((await deliver(format, { id, at })).status).toBe(200);
        const answers = await Promise.all([1, 2, 3, 4, 5].map(() => deliver(format, { id, at })));
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
        const { key } = envelope(format, { id });
        const { side_effects: sideEffects, deliveries } = await stats();
        expect(sideEffects - before.side_effects).toBe(1);
        expect(deliveries[key]).toEqual({ requests: 8, side_effects: 1 });
      });

      it('is not misled by events that come in another order', async () => {
        const invoice = `inv_${newDeliveryId()}`;
        const data = JSON.stringify({ invoice_id: invoice });
        const event = (type: string, second: number) =>
          deliver(format, { type: `invoice.${type}`, data, at: `2026-01-31T12:00:0${second}.000Z` });
        await event('paid', 2);
        expect((await stats()).newest[invoice]).toEqual({ type: 'invoice.paid', at: '2026-01-31T12:00:02.000Z' });
        expect((await event('created', 1)).status).toBe(200);
        expect((await stats()).newest[invoice]?.type).toBe('invoice.paid');
        await event('refunded', 3);
        expect((await stats()).newest[invoice]?.type).toBe('invoice.refunded');
      });

      it('takes data of any kind', async () => {
        const odd =
          '{ "n": 1.000, "s": "\\u0000\\ud800\u2028\u{1f4ef}",\n"n": 123456789012345678901234567890, "e": -1e400 }';
        const long = `{"n":${'7'.repeat(10_000)}}`;
        const deep = `${'['.repeat(128)}${']'.repeat(128)}`;
        for (const data of [odd, long, deep, 'null', '[]', '"text"', '1', '{"invoice_id":5,"challenge":[]}']) {
          expect(await deliver(format, { data })).toMatchObject({ status: 200, text: 'ok' });
        }
      });

      it('answers a challenge with the challenge, if it is signed', async () => {
        const challenge = 'abcdefghijklmnopqrstuvwxyz0123456789-_ABCDE';
        const verification = { type: 'webhook.verification', data: JSON.stringify({ challenge }) };
        const before = await stats();
        const answer = await deliver(format, verification);
        expect(answer).toMatchObject({ status: 200, text: challenge });
        expect(answer.type).toMatch(/^text\/plain/);
        const refused = await deliver(format, verification, [stranger]);
        expect(refused.status).toBe(401);
        expect(refused.text).not.toContain(challenge);
        expect((await stats()).side_effects).toBe(before.side_effects);
      });

      it('answers a ping, and does nothing else', async () => {
        const before = await stats();
        const answer = await deliver(format, { type: 'webhook.ping' });
        expect(answer.status).toBe(200);
        expect((await stats()).side_effects).toBe(before.side_effects);
        expect((await stats()).deliveries).not.toHaveProperty([answer.key]);
      });
    });

    it.each([
      ['default', 'standard'],
      ['standard', 'default'],
    ] as const)('takes the %s envelope with the %s signature', async (form, signing) => {
      const { body, key } = envelope(form);
      for (let i = 0; i < 2; i++)
        expect((await post(sign(signing, body, { secrets: [current] }), body)).status).toBe(200);
      expect((await stats()).deliveries[key]).toEqual({ requests: 2, side_effects: 1 });
    });

    it('tells apart events of two sources with the same id', async () => {
      const before = await stats();
      const id = newDeliveryId();
      for (const source of ['/billing', '/orders', '/billing']) await deliver('standard', { id, source });
      expect((await stats()).side_effects - before.side_effects).toBe(2);
    });

    it.each(['hooks.example.com', '127.0.0.1:8400', '[::1]:8400'])('allows %s to send, when asked', async (origin) => {
      const response = await fetch(receiver.url, {
        method: 'OPTIONS',
        headers: { 'WebHook-Request-Origin': origin, 'WebHook-Request-Rate': '120' },
      });
      expect([200, 204]).toContain(response.status);
      expect(response.headers.get('webhook-allowed-origin')).toBe(origin);
      expect(response.headers.get('webhook-allowed-rate')).toMatch(/^[1-9]\d*$/);
    });

    it.each([{}, { 'WebHook-Request-Origin': 'not a host' }])(
      'allows nobody in a handshake with %j',
      async (headers) => {
        const response = await fetch(receiver.url, { method: 'OPTIONS', headers });
        expect(response.headers.get('webhook-allowed-origin')).toBeNull();
        expect(response.headers.get('allow')).toContain('POST');
      },
    );

    it.each([
      ['GET', '/hook'],
      ['GET', '/'],
      ['POST', '/'],
    ])('finds nothing at %s %s', async (method, path) => {
      expect((await fetch(new URL(path, receiver.url), { method })).status).toBe(404);
    });

    it('outlives a client that goes away in the middle of a body', async () => {
      const { hostname, port } = new URL(receiver.url);
      await new Promise<void>((resolve) => {
        const socket = connect(Number(port), hostname, () => {
          socket.write('POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{', () => socket.destroy());
        });
        socket.once('close', () => resolve());
      });
      expect((await deliver('default', {})).status).toBe(200);
    });

    it('logs no secret', async () => {
      await deliver('default', {}, [stranger]);
      await expect.poll(() => receiver.output).toContain('rejected a request: no_match');
      for (const secret of [current, previous]) expect(receiver.output).not.toContain(secret.slice('whsec_'.length));
    });

    it('takes nothing that is signed with an empty key', async () => {
      const unready = new ReceiverProcess(language);
      try {
        await unready.start(['whsec_', 'whsec_not-base64!']);
        const { body } = envelope('standard');
        const headers = sign('standard', body, { secrets: ['whsec_'] });
        const { status } = await fetch(unready.url, { method: 'POST', headers, body: new Uint8Array(body) });
        expect(status).toBe(401);
        // It got as far as the keys.
        await expect.poll(() => unready.output).toContain('no_match');
      } finally {
        await unready.stop();
      }
    });

    // The one in Node can be given its secrets later.
    if (language.name !== 'node') {
      it('does not start without a secret', () => {
        const { status, stderr } = receiver.run([], { WEBHOOK_SECRET: ' , ' });
        expect(status).toBe(2);
        expect(stderr).toContain('WEBHOOK_SECRET is not set');
      });
    }

    it('says how to use it', () => {
      const { status, stdout } = receiver.run(['--help'], {});
      expect(status).toBe(0);
      expect(stdout).toMatch(/WEBHOOK_SECRET.*PORT.*HOST.*\/hook/s);
    });

    it('stops when asked', async () => {
      expect(await receiver.stop()).toBe(0);
    });
  });
}
