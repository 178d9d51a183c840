import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { verifySignature, type VerifyInput } from '../../examples/receivers/node/verify-signature.js';
import { signBody } from '../../src/delivery/signature.js';

const seconds = 1_769_860_800;
const nowMs = seconds * 1_000 + 999;
const body = Buffer.from('{"type":"invoice.paid"}');
const keyBytes = Buffer.alloc(32, 7);
const secret = `whsec_${keyBytes.toString('base64')}`;
const hex = createHmac('sha256', secret).update(`${seconds}.`).update(body).digest('hex');
const base64 = createHmac('sha256', keyBytes).update(`whd_1.${seconds}.`).update(body).digest('base64');

const verify = (headers: VerifyInput['headers'], changes: Partial<VerifyInput> = {}) => {
  const result = verifySignature({ body, headers, secrets: [secret], nowMs, ...changes });
  return result.ok ? 'ok' : result.reason;
};
const verifyDefault = (header: string | undefined, changes: Partial<VerifyInput> = {}) =>
  verify({ 'webhook-signature': header }, changes);
const standard = (signature: string | undefined, changes: Record<string, string | undefined> = {}) => ({
  'webhook-id': 'whd_1',
  'webhook-timestamp': String(seconds),
  'webhook-signature': signature,
  ...changes,
});

describe("the sample's verification", () => {
  it('accepts what Posthorn signs, with any number of secrets on either side', () => {
    const text = fc.string({ minLength: 1 });
    fc.assert(
      fc.property(fc.uint8Array(), text, fc.array(text), fc.array(text), (bytes, shared, ours, theirs) => {
        const raw = Buffer.from(bytes);
        const header = signBody(raw, [...ours, shared], seconds);
        expect(verifyDefault(header, { body: raw, secrets: [...theirs, shared] })).toBe('ok');
      }),
    );
  });

  it('accepts what the reference library of Standard Webhooks signs', () => {
    const id = fc.stringMatching(/^[A-Za-z0-9_.-]{1,40}$/);
    const key = fc.uint8Array({ minLength: 32, maxLength: 64 });
    fc.assert(
      fc.property(fc.string(), id, key, (text, messageId, bytes) => {
        const own = `whsec_${Buffer.from(bytes).toString('base64')}`;
        const signature = new Webhook(own).sign(messageId, new Date(seconds * 1_000), text);
        const headers = standard(signature, { 'webhook-id': messageId });
        expect(verify(headers, { body: Buffer.from(text), secrets: [secret, own] })).toBe('ok');
      }),
    );
  });

  it.each([
    ['the plain form', `t=${seconds},v1=${hex}`],
    ['several values, ours last', `t=${seconds},v1=${'0'.repeat(64)},v1=${hex}`],
    ['several values, ours first', `t=${seconds},v1=${hex},v1=${'0'.repeat(64)}`],
    ['schemes to come', `t=${seconds},v0=abc,v1=${hex},v2=abc`],
    ['spaces', ` t=${seconds}, v1=${hex} `],
  ])('accepts %s', (_, header) => {
    expect(verifyDefault(header)).toBe('ok');
  });

  it.each([
    ['no header', undefined, 'header_missing'],
    ['an empty header', '', 'header_missing'],
    ['no timestamp', `v1=${hex}`, 'header_malformed'],
    ['no signature', `t=${seconds}`, 'header_malformed'],
    ['a short signature', `t=${seconds},v1=${hex.slice(2)}`, 'header_malformed'],
    ['a long signature', `t=${seconds},v1=${hex}00`, 'header_malformed'],
    ['a signature that is not hexadecimal', `t=${seconds},v1=${'g'.repeat(64)}`, 'header_malformed'],
    ['another scheme only', `t=${seconds},v0=${hex}`, 'header_malformed'],
    ['a timestamp that is no number', `t=NaN,v1=${hex}`, 'header_malformed'],
    ['a negative timestamp', `t=-1,v1=${hex}`, 'header_malformed'],
    ['another timestamp', `t=${seconds + 1},v1=${hex}`, 'no_match'],
    ['another signature', `t=${seconds},v1=${'0'.repeat(64)}`, 'no_match'],
    ['garbage', ',=,,t', 'header_malformed'],
  ])('rejects %s', (_, header, reason) => {
    expect(verifyDefault(header)).toBe(reason);
  });

  it.each([
    ['the plain form', standard(`v1,${base64}`), 'ok'],
    ['several values, ours last', standard(`v1,${'A'.repeat(43)}= v1,${base64}`), 'ok'],
    ['schemes to come', standard(`v1a,abc v1,${base64} v2,abc`), 'ok'],
    ['a secret without its prefix', standard(`v1,${base64}`), 'ok', [secret.slice('whsec_'.length)]],
    ['no id', standard(`v1,${base64}`, { 'webhook-id': undefined }), 'header_malformed'],
    ['no timestamp', standard(`v1,${base64}`, { 'webhook-timestamp': undefined }), 'header_malformed'],
    ['a timestamp that is no number', standard(`v1,${base64}`, { 'webhook-timestamp': '1e9' }), 'header_malformed'],
    ['no padding', standard(`v1,${base64.slice(0, -1)}`), 'header_malformed'],
    ['another scheme only', standard(`v1a,${base64}`), 'header_malformed'],
    ['another id', standard(`v1,${base64}`, { 'webhook-id': 'whd_2' }), 'no_match'],
    ['another timestamp', standard(`v1,${base64}`, { 'webhook-timestamp': String(seconds + 1) }), 'no_match'],
    ['a secret that is not base64', standard(`v1,${base64}`), 'no_match', ['whsec_not-base64']],
  ])('judges the standard format: %s', (_, headers, result, secrets = [secret]) => {
    expect(verify(headers, { secrets })).toBe(result);
  });

  it('bounds the skew on both sides', () => {
    for (const headers of [{ 'webhook-signature': `t=${seconds},v1=${hex}` }, standard(`v1,${base64}`)]) {
      for (const [shift, result] of [
        [300, 'ok'],
        [-300, 'ok'],
        [301, 'timestamp_skew'],
        [-301, 'timestamp_skew'],
      ] as const) {
        expect(verify(headers, { nowMs: nowMs + shift * 1_000 })).toBe(result);
      }
    }
  });

  it('rejects everything without a secret, and never takes an empty one', () => {
    const emptyHex = createHmac('sha256', '').update(`${seconds}.`).update(body).digest('hex');
    const emptyBase64 = createHmac('sha256', '').update(`whd_1.${seconds}.`).update(body).digest('base64');
    expect(verifyDefault(`t=${seconds},v1=${hex}`, { secrets: [] })).toBe('no_match');
    expect(verifyDefault(`t=${seconds},v1=${emptyHex}`, { secrets: [''] })).toBe('no_match');
    for (const empty of ['', 'whsec_', 'whsec_-', 'whsec_=']) {
      expect(verify(standard(`v1,${emptyBase64}`), { secrets: [empty] })).toBe('no_match');
    }
  });

  it('rejects another body', () => {
    const other = { body: Buffer.from('{"type":"invoice.paid" }') };
    expect(verifyDefault(`t=${seconds},v1=${hex}`, other)).toBe('no_match');
    expect(verify(standard(`v1,${base64}`), other)).toBe('no_match');
  });
});
