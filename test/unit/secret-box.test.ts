import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseKeyRing } from '../../src/config/key-ring.js';
import { SecretBox, SecretBoxError } from '../../src/security/secret-box.js';
import { generateSecret } from '../../src/security/signing-secret.js';

const entry = (id: string) => `${id}:${randomBytes(32).toString('base64')}`;
const boxOf = (...entries: string[]) => new SecretBox(parseKeyRing(entries.join(',')));
const k1 = entry('k1');
const k2 = entry('k_2-b');

function codeOf(open: () => string): string {
  try {
    return `opened: ${open()}`;
  } catch (error) {
    if (error instanceof SecretBoxError) return error.code;
    throw error;
  }
}

describe('a secret box', () => {
  it('opens what it sealed', () => {
    const box = boxOf(k1);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (plain, context) => {
        fc.pre(!/\p{Surrogate}/u.test(plain));
        expect(box.open(box.seal(plain, context), context)).toBe(plain);
      }),
    );
  });

  it('never seals twice to the same text, and shows nothing of the secret', () => {
    const box = boxOf(k1);
    const secret = generateSecret();
    const sealed = new Set(Array.from({ length: 1_000 }, () => box.seal(secret, 'we_1')));
    expect(sealed.size).toBe(1_000);
    const [first] = sealed;
    expect(first).toMatch(/^v1\.k1\.[A-Za-z0-9_-]+$/);
    expect(Buffer.from(first!.split('.')[2]!, 'base64url').includes(secret)).toBe(false);
  });

  it('opens with an older key of the ring, and seals with the first', () => {
    const sealed = boxOf(k1).seal('s', 'we_1');
    const rotated = boxOf(k2, k1);
    expect(rotated.open(sealed, 'we_1')).toBe('s');
    expect(rotated.seal('s', 'we_1')).toMatch(/^v1\.k_2-b\./);
    expect(boxOf(k1, k2).open(rotated.seal('s', 'we_1'), 'we_1')).toBe('s');
  });

  it('names the key that is missing', () => {
    const sealed = boxOf(k1).seal('s', 'we_1');
    expect(codeOf(() => boxOf(k2).open(sealed, 'we_1'))).toBe('unknown_key');
    expect(() => boxOf(k2).open(sealed, 'we_1')).toThrow(/'k1'/);
  });

  it('refuses another key under the same id', () => {
    const sealed = boxOf(k1).seal('s', 'we_1');
    expect(codeOf(() => boxOf(entry('k1')).open(sealed, 'we_1'))).toBe('not_authentic');
  });

  it('refuses what was sealed for something else', () => {
    const box = boxOf(k1);
    expect(codeOf(() => box.open(box.seal('s', 'we_1'), 'we_2'))).toBe('not_authentic');
  });

  it('refuses a key id that was changed to another key of the same bytes', () => {
    const [, bytes] = k1.split(':');
    const box = boxOf(k1, `k9:${bytes}`);
    expect(codeOf(() => box.open(box.seal('s', 'c').replace('v1.k1.', 'v1.k9.'), 'c'))).toBe('not_authentic');
  });

  it('refuses any change of a single character', () => {
    const box = boxOf(k1);
    const sealed = box.seal('whsec_secret', 'we_1');
    for (let i = 0; i < sealed.length; i++) {
      const changed = sealed.slice(0, i) + (sealed[i] === 'A' ? 'B' : 'A') + sealed.slice(i + 1);
      expect(codeOf(() => box.open(changed, 'we_1'))).toMatch(/^(malformed|unknown_key|not_authentic)$/);
    }
  });

  it.each(['', 'whsec_plain', 'v1.k1', 'v1.k1.', 'v1.k1.AAAA', 'v2.k1.AAAA', 'v1..AAAA', 'v1.k1.A=B', 'v1.k1.AA.AA'])(
    'refuses %j as malformed',
    (sealed) => {
      expect(codeOf(() => boxOf(k1).open(sealed, 'c'))).toBe('malformed');
    },
  );

  it('cuts no authentication tag short', () => {
    const box = boxOf(k1);
    const [version, id, bytes] = box.seal('', 'c').split('.');
    const cut = Buffer.from(bytes!, 'base64url').subarray(0, -4).toString('base64url');
    expect(codeOf(() => box.open(`${version}.${id}.${cut}`, 'c'))).toBe('malformed');
  });
});

describe('a new signing secret', () => {
  it('is whsec_ and base64 of 32 bytes, each time another', () => {
    const secrets = Array.from({ length: 100 }, generateSecret);
    expect(new Set(secrets).size).toBe(100);
    for (const secret of secrets) {
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32);
    }
  });
});
