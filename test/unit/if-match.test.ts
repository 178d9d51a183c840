import { describe, expect, it } from 'vitest';
import { allowsChange, toETag } from '../../src/modules/endpoints/if-match.js';

describe('If-Match (RFC 9110, section 13.1.1)', () => {
  it.each([
    undefined,
    '*',
    ' * ',
    '"7"',
    ' "7" ',
    '"6","7"',
    '"6" , "7"',
    ',,"7",,',
    '"7", "7"',
    'W/"6", "7"',
    '"a,b", "7"',
  ])('allows the change: %s', (header) => expect(allowsChange(header, toETag(7))).toBe(true));

  it.each(['"6"', '"70"', '"07"', '""', 'W/"7"', '"6", W/"7"', '"6,7"', '"\u00ff"', '"*"'])(
    'forbids the change: %s',
    (header) => expect(allowsChange(header, toETag(7))).toBe(false),
  );

  it.each([
    '',
    ' ',
    ',',
    '7',
    '"7',
    '7"',
    '"7" "6"',
    '"7"x',
    'w/"7"',
    'W/7',
    '*, "7"',
    '**',
    '"7";q=1',
    '"a b"',
    "'7'",
  ])('can’t be read: %j', (header) => {
    expect(() => allowsChange(header, toETag(7))).toThrow(/such as "7"/);
  });

  it('is read in time that grows with its length only', () => {
    const startedAt = performance.now();
    for (const part of [',', ' ', '"7",', '"7" ', ', ', '"', 'W/']) {
      const header = `${part.repeat(16_000 / part.length)}x`;
      expect(() => allowsChange(header, toETag(7))).toThrow();
    }
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});
