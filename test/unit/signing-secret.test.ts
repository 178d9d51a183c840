import * as fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { exampleSecret, judgeSecret } from '../../src/domain/signing-secret.js';
import { decodeSecret, generateSecret } from '../../src/security/signing-secret.js';

const base64 = (bytes: number, fill = 0xfb) => Buffer.alloc(bytes, fill).toString('base64');

describe('a signing secret', () => {
  it('that is generated is accepted, and each is another one', () => {
    const secrets = Array.from({ length: 50 }, generateSecret);
    for (const secret of secrets) expect(judgeSecret(secret).ok).toBe(true);
    expect(new Set(secrets).size).toBe(50);
  });

  it.each([32, 33, 34, 48, 63, 64])('may hold %i bytes', (bytes) => {
    expect(judgeSecret(`whsec_${base64(bytes)}`).ok).toBe(true);
    expect(decodeSecret(`whsec_${base64(bytes)}`)).toEqual(Buffer.alloc(bytes, 0xfb));
  });

  const good = base64(32);
  it.each([
    ['empty', '', 'is not empty'],
    ['a prefix alone', 'whsec_', 'follows whsec_'],
    ['without prefix', good, 'begins with whsec_'],
    ['with a prefix in capitals', `WHSEC_${good}`, 'small letters'],
    ['with another prefix', `sk_${good}`, 'begins with whsec_'],
    ['with the prefix twice', `whsec_whsec_${good}`, 'stands there once'],
    ['with a space before', ` whsec_${good}`, 'no whitespace'],
    ['with a line break behind', `whsec_${good}\n`, 'no whitespace'],
    ['with a space within', `whsec_${good.slice(0, 8)} ${good.slice(8)}`, 'no whitespace'],
    ['in the URL alphabet', `whsec_${good.replaceAll('+', '-').replaceAll('/', '_')}`, 'standard kind'],
    ['without padding', `whsec_${good.replace(/=+$/, '')}`, 'here with 1'],
    ['with too much padding', `whsec_${good}=`, 'here with 1'],
    ['with padding where none belongs', `whsec_${base64(33)}==`, 'here with 0'],
    ['with padding within', `whsec_${base64(31)}${good}`, 'only letters, digits'],
    ['with one character too many', `whsec_${base64(33)}A`, 'complete'],
    ['that is not canonical (2 spare bits)', `whsec_${good.replace(/.=$/, '9=')}`, 'canonical'],
    ['that is not canonical (4 spare bits)', `whsec_${base64(34).replace(/.==$/, '9==')}`, 'canonical'],
    ['with a foreign character', `whsec_é${good.slice(1)}`, 'only letters, digits'],
    ['with a NUL', `whsec_${good}\0`, 'only letters, digits'],
    ['in hexadecimal', `whsec_${'0a'.repeat(16)}`, 'this one holds 24'],
    ['of 31 bytes', `whsec_${base64(31)}`, 'this one holds 31'],
    ['of 65 bytes', `whsec_${base64(65)}`, 'this one holds 65'],
  ])('is refused %s, and told why, with an example', (_, text, why) => {
    const judgement = judgeSecret(text);
    if (judgement.ok) throw new Error('accepted');
    expect(judgement.rule).toContain(why);
    expect(judgement.rule).toContain(exampleSecret);
    if (text.length > 10) expect(judgement.rule).not.toContain(text.trim());
    expect(decodeSecret(text)).toBeNull();
  });

  it('in the examples is accepted', () => {
    expect(judgeSecret(exampleSecret).ok).toBe(true);
  });

  it('has exactly one accepted form', () => {
    const edited = fc.tuple(
      fc.uint8Array({ minLength: 32, maxLength: 64 }),
      fc.nat(),
      fc.constantFrom('A', 'b', '9', '+', '/', '=', '-', '_', ' ', '\n'),
    );
    fc.assert(
      fc.property(edited, ([bytes, position, character]) => {
        const text = `whsec_${Buffer.from(bytes).toString('base64')}`;
        const at = position % text.length;
        const changed = text.slice(0, at) + character + text.slice(at + 1);
        const key = decodeSecret(changed);
        if (key !== null) expect(`whsec_${key.toString('base64')}`).toBe(changed);
        expect(decodeSecret(text)).toEqual(Buffer.from(bytes));
      }),
      { numRuns: 1_000 },
    );
  });

  it('means the same key to the Standard Webhooks library', () => {
    const secret = generateSecret();
    const key = decodeSecret(secret);
    if (key === null) throw new Error('refused');
    const at = new Date('2026-01-31T12:00:00.000Z');
    expect(new Webhook(secret).sign('a', at, 'b')).toBe(new Webhook(key, { format: 'raw' }).sign('a', at, 'b'));
  });
});
