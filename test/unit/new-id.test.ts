import { describe, expect, it } from 'vitest';
import { idPrefixes, isDeliveryId } from '../../src/domain/ids.js';
import { newId } from '../../src/security/new-id.js';

describe('a new id', () => {
  it('has its prefix and a ULID', () => {
    for (const prefix of Object.values(idPrefixes)) {
      expect(newId(prefix)).toMatch(new RegExp(`^${prefix}[0-7][0-9A-HJKMNP-TV-Z]{25}$`));
    }
    expect(isDeliveryId(newId('whd_'))).toBe(true);
  });

  it('sorts after the one before it', () => {
    const ids = Array.from({ length: 10_000 }, () => newId('evt_'));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(ids);
  });
});
