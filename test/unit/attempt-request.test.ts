import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { Stripe } from 'stripe';
import { describe, expect, it } from 'vitest';
import {
  AttemptConfigError,
  buildAttemptRequest,
  buildSignedRequest,
  type AttemptRequestInput,
} from '../../src/delivery/attempt-request.js';
import { readEvent } from '../../src/modules/events/event-body.js';
import { generateSecret } from '../../src/security/signing-secret.js';
import { jsonText } from '../support/json-text.js';

const stripe = new Stripe('sk_test_x');
const nowMs = Date.parse('2026-01-31T12:00:00.999Z');
const delivery = {
  id: 'whd_01JC0000000000000000000000',
  eventId: 'inv-1:paid',
  tenantId: 'acme',
  type: 'invoice.paid',
  createdAt: '2026-01-31T11:59:59.000Z',
  apiVersion: null,
  source: '/billing',
  subject: 'inv-1',
  data: '{"amount":1.00}',
};
const endpoint = {
  url: 'https://example.com/hook',
  envelope: 'default',
  signature: 'default',
  payload: 'full',
  headers: {},
  timeoutMs: 10_000,
} as const;
const cloudEvents = { envelope: 'cloudevents', signature: 'standard_webhooks' } as const;

interface Changes extends Partial<Omit<AttemptRequestInput, 'endpoint'>> {
  endpoint?: Partial<AttemptRequestInput['endpoint']>;
}
const build = ({ endpoint: settings, ...changes }: Changes = {}) =>
  buildAttemptRequest({
    delivery,
    secrets: ['whsec_abc'],
    attemptNumber: 1,
    nowMs,
    ...changes,
    endpoint: { ...endpoint, ...settings },
  });

/** What a consumer with stripe's library does. */
function verify(request: ReturnType<typeof build>, secret: string, receivedAtMs = nowMs, body = request.body): unknown {
  const header = request.headers['Webhook-Signature'] ?? '';
  return stripe.webhooks.constructEvent(body ?? '', header, secret, undefined, undefined, receivedAtMs);
}

describe('the request of an attempt in the default profile', () => {
  it('has the envelope as its body and names delivery, event and attempt', () => {
    const request = build({ attemptNumber: 3 });
    expect(request).toMatchObject({ method: 'POST', url: 'https://example.com/hook', timeoutMs: 10_000 });
    expect(request.body?.toString('utf8')).toBe(
      `{"delivery_id":"${delivery.id}","type":"invoice.paid","created_at":"2026-01-31T11:59:59.000Z","api_version":null,"data":{"amount":1.00}}`,
    );
    expect(request.headers).toEqual({
      'Content-Type': 'application/json',
      'User-Agent': expect.stringMatching(/^Posthorn\/\d+\.\d+\.\d+/) as string,
      'Webhook-Id': delivery.id,
      'Webhook-Event-Id': 'inv-1:paid',
      'Webhook-Attempt': '3',
      'Webhook-Signature': expect.stringMatching(/^t=1769860800,v1=[0-9a-f]{64}$/) as string,
    });
  });

  it("is signed over `t.body` with the secret's whole text as the key", () => {
    const request = build();
    const expected = createHmac('sha256', 'whsec_abc')
      .update(`1769860800.${String(request.body)}`)
      .digest('hex');
    expect(request.headers['Webhook-Signature']).toBe(`t=1769860800,v1=${expected}`);
  });

  it('has a fresh timestamp and signature on every attempt, and the same body and id', () => {
    const first = build();
    const second = build({ attemptNumber: 2, nowMs: nowMs + 60_000 });
    expect(second.body).toEqual(first.body);
    expect(second.headers['Webhook-Id']).toBe(first.headers['Webhook-Id']);
    expect(second.headers['Webhook-Signature']).not.toBe(first.headers['Webhook-Signature']);
    expect(() => verify(second, 'whsec_abc', nowMs + 60_000)).not.toThrow();
  });

  it.each([[[]], [['']], [['whsec_abc', '']]])('is refused without a usable secret: %j', (secrets) => {
    expect(() => build({ secrets })).toThrow(AttemptConfigError);
  });
});

describe('the request of an attempt in the CloudEvents profile', () => {
  const secret = generateSecret();
  const request = build({ endpoint: cloudEvents, secrets: [secret], attemptNumber: 2 });

  it('has the event as its body, and still names the delivery', () => {
    expect(request.body?.toString('utf8')).toBe(
      '{"specversion":"1.0","id":"inv-1:paid","source":"/billing","type":"invoice.paid","time":"2026-01-31T11:59:59.000Z",' +
        '"datacontenttype":"application/json","subject":"inv-1","data":{"amount":1.00}}',
    );
    expect(request.headers).toEqual({
      'Content-Type': 'application/cloudevents+json; charset=utf-8',
      'User-Agent': expect.stringMatching(/^Posthorn\//) as string,
      'Webhook-Id': delivery.id,
      'Webhook-Event-Id': 'inv-1:paid',
      'Webhook-Attempt': '2',
      'Webhook-Timestamp': '1769860800',
      'Webhook-Signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/) as string,
    });
  });

  it('is signed over `id.timestamp.body` with the decoded secret as the key', () => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const expected = createHmac('sha256', key)
      .update(`${delivery.id}.1769860800.${String(request.body)}`)
      .digest('base64');
    expect(request.headers['Webhook-Signature']).toBe(`v1,${expected}`);
  });

  it("puts the newest secret's signature first", () => {
    const [fresh, old] = [generateSecret(), generateSecret()];
    const [both, first, second] = [[fresh, old], [fresh], [old]].map(
      (secrets) => build({ endpoint: cloudEvents, secrets }).headers['Webhook-Signature'],
    );
    expect(both).toBe(`${first} ${second}`);
  });

  it.each([
    ['none', []],
    ['an empty one', ['']],
    ['one without padding', [secret.replace(/=+$/, '')]],
    ['one of the URL alphabet', [`whsec_${Buffer.alloc(32, 0xff).toString('base64url')}`]],
    ['one without prefix', [secret.slice('whsec_'.length)]],
    ['a bad one beside a good one', [secret, 'whsec_abc']],
  ])('is refused without usable secrets, and nothing of them is told: %s', (_, secrets) => {
    let message = '';
    try {
      build({ endpoint: cloudEvents, secrets });
    } catch (error) {
      expect(error).toBeInstanceOf(AttemptConfigError);
      message = String(error);
    }
    expect(message).toMatch(/secret/);
    for (const text of secrets.filter((one) => one !== '')) expect(message).not.toContain(text);
  });
});

describe('envelope and signature', () => {
  it('are chosen each on its own', () => {
    const secrets = [generateSecret()];
    const mixed = build({ endpoint: { signature: 'standard_webhooks' }, secrets });
    expect(mixed.headers).toMatchObject({ 'Content-Type': 'application/json', 'Webhook-Timestamp': '1769860800' });
    const other = build({ endpoint: { envelope: 'cloudevents' }, secrets });
    expect(other.headers['Content-Type']).toBe('application/cloudevents+json; charset=utf-8');
    expect(other.headers['Webhook-Signature']).toMatch(/^t=1769860800,v1=/);
    expect(other.headers).not.toHaveProperty('Webhook-Timestamp');
  });
});

describe('a thin payload', () => {
  it.each([endpoint, { ...endpoint, ...cloudEvents }])("has the event's id for data: $envelope", (settings) => {
    const request = build({ endpoint: { ...settings, payload: 'thin' }, secrets: [generateSecret()] });
    expect(request.body?.toString('utf8')).toMatch(/,"data":\{"event_id":"inv-1:paid"\}\}$/);
    expect(request.body?.toString('utf8')).not.toContain('amount');
  });
});

describe('a request that is no delivery', () => {
  const ping = {
    messageId: 'msg_1',
    tenantId: 'acme',
    type: 'webhook.ping',
    data: '{}',
    createdAt: '2026-01-31T12:00:00.000Z',
    endpoint: { ...endpoint, headers: { Authorization: 'Bearer 3f9a' } },
    secrets: ['whsec_abc'],
    nowMs,
  };

  it("has the endpoint's envelope, signature and headers, and counts no attempts", () => {
    const request = buildSignedRequest(ping);
    expect(request.body?.toString('utf8')).toBe(
      '{"delivery_id":"msg_1","type":"webhook.ping","created_at":"2026-01-31T12:00:00.000Z","api_version":null,"data":{}}',
    );
    expect(verify(request, 'whsec_abc')).toMatchObject({ delivery_id: 'msg_1' });
    expect(Object.keys(request.headers).sort()).toEqual([
      'Authorization',
      'Content-Type',
      'User-Agent',
      'Webhook-Id',
      'Webhook-Signature',
    ]);
    expect(request).toMatchObject({ method: 'POST', url: endpoint.url, timeoutMs: 10_000 });
  });

  it('is an event of the tenant as a CloudEvent', () => {
    const request = buildSignedRequest({
      ...ping,
      endpoint: { ...ping.endpoint, ...cloudEvents },
      secrets: [generateSecret()],
    });
    expect(JSON.parse(String(request.body))).toEqual({
      specversion: '1.0',
      id: 'msg_1',
      source: 'urn:posthorn:tenant:acme',
      type: 'webhook.ping',
      time: '2026-01-31T12:00:00.000Z',
      datacontenttype: 'application/json',
      data: {},
    });
    expect(request.headers['Webhook-Id']).toBe('msg_1');
  });

  it('is refused under the same rules', () => {
    expect(() => buildSignedRequest({ ...ping, secrets: [] })).toThrow(AttemptConfigError);
    const headers = { 'Webhook-Id': 'x' };
    expect(() => buildSignedRequest({ ...ping, endpoint: { ...endpoint, headers } })).toThrow(AttemptConfigError);
  });
});

describe("the endpoint's own headers", () => {
  it('are sent as they stand, beside ours', () => {
    const ours = build().headers;
    const own = { 'X-Team': 'billing', authorization: 'Bearer 3f9a' };
    expect(build({ endpoint: { headers: own } }).headers).toEqual({ ...ours, ...own });
  });

  it.each([
    ['X-A', 'a\r\nWebhook-Id: b'],
    ['X-A', 'a\0'],
    ['X-A', '\u{1f4ef}'],
    ['X-A', ''],
    ['X A', 'a'],
    ['', 'a'],
    ['X-A:', 'a'],
    ['webhook-signature', 't=1,v1=0'],
    ['WEBHOOK-ID', 'x'],
    ['HOST', 'internal'],
    ['content-length', '0'],
    ['Transfer-Encoding', 'chunked'],
    ['user-agent', 'x'],
    ['CONTENT-TYPE', 'text/plain'],
  ])('fail the attempt where a row holds what may not be sent: %j: %j', (name, value) => {
    const building = () => build({ endpoint: { headers: { [name]: value } } });
    expect(building).toThrow(AttemptConfigError);
    expect(building).toThrow(name === '' ? 'not empty' : JSON.stringify(name));
  });

  it('fail the attempt where a row names one twice or holds no text', () => {
    expect(() => build({ endpoint: { headers: { 'X-A': 'a', 'x-a': 'b' } } })).toThrow(/given once/);
    const odd = JSON.parse('{"X-A":1}') as Record<string, string>;
    expect(() => build({ endpoint: { headers: odd } })).toThrow(AttemptConfigError);
    const none = JSON.parse('null') as Record<string, string>;
    expect(() => build({ endpoint: { headers: none } })).toThrow(AttemptConfigError);
  });

  it('never show their values in the fault', () => {
    expect(() => build({ endpoint: { headers: { Authorization: 'Bearer s3cr3t\n' } } })).toThrow(/^(?!.*s3cr3t)/s);
  });
});

describe("stripe's verifier, unchanged,", () => {
  it('accepts every published body, byte for byte', () => {
    fc.assert(
      fc.property(jsonText, fc.nat(1_000), (data, secondsLater) => {
        const published = readEvent(Buffer.from(`{"type":"invoice.paid","data":${data}}`, 'utf8'));
        if (!published.ok) throw new Error(published.detail);
        const secret = generateSecret();
        const later = nowMs + secondsLater * 1_000;
        const request = build({
          delivery: { ...delivery, data: published.event.data },
          secrets: [secret],
          nowMs: later,
        });
        expect(verify(request, secret, later)).toMatchObject({
          type: 'invoice.paid',
          data: JSON.parse(data) as unknown,
        });
        expect(request.body?.toString('utf8')).toContain(`"data":${data}}`);
      }),
      { numRuns: 500 },
    );
  });

  it('accepts the old and the new secret during a rotation, and no other', () => {
    const [older, old, fresh, other] = [generateSecret(), generateSecret(), generateSecret(), generateSecret()];
    for (const secrets of [
      [old, fresh],
      [fresh, old],
      [fresh, old, older],
    ]) {
      const request = build({ secrets });
      for (const secret of secrets) expect(() => verify(request, secret)).not.toThrow();
      expect(() => verify(request, other)).toThrow(/No signatures found matching/);
    }
    expect(() => verify(build({ secrets: [fresh] }), old)).toThrow(/No signatures found matching/);
  });

  it('rejects a body of which any byte was changed', () => {
    const request = build();
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 127 }), (at, mask) => {
        const body = Buffer.from(request.body ?? '');
        body[at % body.length]! ^= mask;
        expect(() => verify(request, 'whsec_abc', nowMs, body)).toThrow(/No signatures found matching/);
      }),
    );
  });

  it('rejects a changed timestamp, and an old one', () => {
    const request = build();
    const header = request.headers['Webhook-Signature'] ?? '';
    const moved = { ...request, headers: { 'Webhook-Signature': header.replace('t=1769860800', 't=1769860801') } };
    expect(() => verify(moved, 'whsec_abc')).toThrow(/No signatures found matching/);
    expect(() => verify(request, 'whsec_abc', nowMs + 302_000)).toThrow(/tolerance/);
  });

  it('has its own header form: ours is the same text', () => {
    const request = build({ secrets: ['whsec_abc'] });
    const theirs = stripe.webhooks.generateTestHeaderString({
      payload: String(request.body),
      secret: 'whsec_abc',
      timestamp: 1769860800,
    });
    expect(request.headers['Webhook-Signature']).toBe(theirs);
  });
});
