import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { verifySignature } from '../../examples/receivers/node/verify-signature.js';
import { signBody } from '../../src/delivery/signature.js';

const seconds = 1_769_860_800;
const nowMs = seconds * 1_000 + 999;
const body = Buffer.from('{"type":"invoice.paid"}');
const secret = 'whsec_abc';
const hex = createHmac('sha256', secret).update(`${seconds}.`).update(body).digest('hex');
const verify = (header: string | undefined, changes: Partial<Parameters<typeof verifySignature>[0]> = {}) => {
  const result = verifySignature({ body, header, secrets: [secret], nowMs, ...changes });
  return result.ok ? 'ok' : result.reason;
};

describe("the sample's verification", () => {
  it('accepts what Posthorn signs, with any number of secrets on either side', () => {
    const text = fc.string({ minLength: 1 });
    fc.assert(
      fc.property(fc.uint8Array(), text, fc.array(text), fc.array(text), (bytes, shared, ours, theirs) => {
        const raw = Buffer.from(bytes);
        const header = signBody(raw, [...ours, shared], seconds);
        expect(verify(header, { body: raw, secrets: [...theirs, shared] })).toBe('ok');
      }),
    );
  });

  it.each([
    ['the plain form', `t=${seconds},v1=${hex}`],
    ['several values, ours last', `t=${seconds},v1=${'0'.repeat(64)},v1=${hex}`],
    ['several values, ours first', `t=${seconds},v1=${hex},v1=${'0'.repeat(64)}`],
    ['schemes to come', `t=${seconds},v0=abc,v1=${hex},v2=abc`],
    ['spaces and capitals', `t=${seconds}, v1=${hex.toUpperCase()}`],
  ])('accepts %s', (_, header) => {
    expect(verify(header)).toBe('ok');
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
    expect(verify(header)).toBe(reason);
  });

  it('bounds the skew on both sides', () => {
    const header = `t=${seconds},v1=${hex}`;
    for (const [shift, result] of [
      [300, 'ok'],
      [-300, 'ok'],
      [301, 'timestamp_skew'],
      [-301, 'timestamp_skew'],
    ] as const) {
      expect(verify(header, { nowMs: nowMs + shift * 1_000 })).toBe(result);
    }
  });

  it('rejects everything without a secret, and never takes an empty one', () => {
    const empty = createHmac('sha256', '').update(`${seconds}.`).update(body).digest('hex');
    expect(verify(`t=${seconds},v1=${hex}`, { secrets: [] })).toBe('no_match');
    expect(verify(`t=${seconds},v1=${empty}`, { secrets: [''] })).toBe('no_match');
  });

  it('rejects another body', () => {
    expect(verify(`t=${seconds},v1=${hex}`, { body: Buffer.from('{"type":"invoice.paid" }') })).toBe('no_match');
  });
});
