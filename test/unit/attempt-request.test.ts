import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { Stripe } from 'stripe';
import { describe, expect, it } from 'vitest';
import { AttemptConfigError, buildAttemptRequest } from '../../src/delivery/attempt-request.js';
import { readEvent } from '../../src/modules/events/event-body.js';
import { generateSecret } from '../../src/security/signing-secret.js';
import { jsonText } from '../support/json-text.js';

const stripe = new Stripe('sk_test_x');
const nowMs = Date.parse('2026-01-31T12:00:00.999Z');
const delivery = {
  id: 'whd_01JC0000000000000000000000',
  eventId: 'inv-1:paid',
  type: 'invoice.paid',
  createdAt: '2026-01-31T11:59:59.000Z',
  apiVersion: null,
  data: '{"amount":1.00}',
};
const base = { delivery, url: 'https://example.com/hook', attemptNumber: 1, nowMs, timeoutMs: 10_000 };
const build = (changes: Partial<Parameters<typeof buildAttemptRequest>[0]> = {}) =>
  buildAttemptRequest({ ...base, secrets: ['whsec_abc'], ...changes });

/** What a consumer with stripe's library does. */
function verify(request: ReturnType<typeof build>, secret: string, receivedAtMs = nowMs, body = request.body): unknown {
  const header = request.headers['Webhook-Signature'] ?? '';
  return stripe.webhooks.constructEvent(body ?? '', header, secret, undefined, undefined, receivedAtMs);
}

describe('the request of an attempt', () => {
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

describe("the endpoint's own headers", () => {
  it('are sent, but replace nothing of ours, whatever their case', () => {
    const ours = build().headers;
    const { headers } = build({
      headers: {
        'X-Team': 'billing',
        'x-team': 'ops',
        'webhook-signature': 't=1,v1=0',
        'WEBHOOK-ID': 'x',
        HOST: 'internal',
        'content-length': '0',
        'Transfer-Encoding': 'chunked',
        'user-agent': 'x',
        'CONTENT-TYPE': 'text/plain',
      },
    });
    expect(headers).toEqual({ ...ours, 'x-team': 'ops' });
  });

  it.each([
    ['X-A', 'a\r\nWebhook-Id: b'],
    ['X-A', 'a\0'],
    ['X-A', '\u{1f4ef}'],
    ['X A', 'a'],
    ['', 'a'],
    ['X-A:', 'a'],
  ])('fail the attempt where they cannot be sent: %j: %j', (name, value) => {
    expect(() => build({ headers: { [name]: value } })).toThrow(AttemptConfigError);
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
