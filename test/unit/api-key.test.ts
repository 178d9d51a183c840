import { describe, expect, it } from 'vitest';
import { generateApiKey, hashApiKey } from '../../src/security/api-key.js';

describe('an API key', () => {
  it('is phk_ and 32 random bytes in base64url', () => {
    const keys = Array.from({ length: 100 }, generateApiKey);
    expect(new Set(keys).size).toBe(100);
    for (const key of keys) expect(key).toMatch(/^phk_[A-Za-z0-9_-]{43}$/);
  });

  it('is hashed with SHA-256', () => {
    expect(hashApiKey('abc').toString('hex')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(hashApiKey('abc ')).not.toEqual(hashApiKey('abc'));
  });
});
