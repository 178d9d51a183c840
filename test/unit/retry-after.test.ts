import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRetryAfterMs } from '../../src/domain/retry-after.js';

const nowMs = Date.parse('2026-03-01T12:00:00.500Z');
const parse = (...values: string[]) => parseRetryAfterMs(values, nowMs);

describe('Retry-After', () => {
  it.each<[string, number | null]>([
    ['0', 0],
    ['1', 1_000],
    ['120', 120_000],
    [' 120\t', 120_000],
    ['007', 7_000],
    ['86400', 86_400_000],
    ['1.5', 1_500],
    ['0.0001', 1],
    ['1.', 1_000],
    ['99999999999999999999999', Number.MAX_SAFE_INTEGER],
    ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
    ['120, 60', 120_000],
    ['60,120', 120_000],
    ['Sun, 01 Mar 2026 12:01:00 GMT', 59_500],
    ['sun, 01 mar 2026 12:01:00 gmt', 59_500],
    ['Sun, 1 Mar 2026 12:01:00 UTC', 59_500],
    ['Sunday, 01-Mar-26 12:01:00 GMT', 59_500],
    ['Sun Mar  1 12:01:00 2026', 59_500],
    ['Sun Mar 01 12:01:00 2026', 59_500],
    ['Wrongday, 01 Mar 2026 12:01:00 GMT', 59_500],
    ['Sun, 01 Mar 2026 12:00:60 GMT', 59_500],
    ['Sun, 01 Mar 2026 12:00:00 GMT', 0],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 0],
    ['Sun Nov  6 08:49:37 1994', 0],
    ['Fri, 31 Dec 9999 23:59:59 GMT', Date.UTC(9999, 11, 31, 23, 59, 59) - nowMs],
    ['Friday, 01-Jan-77 00:00:00 GMT', 0],
    ['Friday, 01-Jan-76 00:00:00 GMT', Date.UTC(2076, 0, 1) - nowMs],
    ['Mon, 29 Feb 2028 00:00:00 GMT', Date.UTC(2028, 1, 29) - nowMs],
    ['Sat, 01 Jan 0050 00:00:00 GMT', 0],
    ['', null],
    [' ', null],
    [',', null],
    ['60,', null],
    ['60, soon', null],
    ['-1', null],
    ['-120.5', null],
    ['+5', null],
    ['Infinity', null],
    ['-Infinity', null],
    ['NaN', null],
    ['1e9', null],
    ['0x10', null],
    ['1_000', null],
    ['١٢٠', null],
    ['60s', null],
    ['1.2.3', null],
    ['.5', null],
    ['soon', null],
    ['2026-03-01T12:01:00Z', null],
    ['Sun, 30 Feb 2026 12:01:00 GMT', null],
    ['Sun, 00 Mar 2026 12:01:00 GMT', null],
    ['Sun, 01 Foo 2026 12:01:00 GMT', null],
    ['Sun, 01 Mar 2026 24:00:00 GMT', null],
    ['Sun, 01 Mar 2026 12:60:00 GMT', null],
    ['Sun, 01 Mar 2026 12:01:00 +0100', null],
    ['Sun, 01 Mar 2026 12:01:00', null],
    ['Mon, 29 Feb 2027 00:00:00 GMT', null],
    ['constructor', null],
    ['\u0000', null],
  ])('%j means %s ms', (value, expected) => {
    expect(parse(value)).toBe(expected);
  });

  it('that is repeated means the longest wait that can be read', () => {
    expect(parse('60', '120', '30')).toBe(120_000);
    expect(parse('junk', '60')).toBe(60_000);
    expect(parse('Sun, 01 Mar 2026 12:05:00 GMT', '60')).toBe(299_500);
    expect(parse('junk', '')).toBeNull();
  });

  it('that is absent means nothing', () => {
    expect(parse()).toBeNull();
  });

  it('never throws, and is null or a safe whole number that is not negative', () => {
    const part = fc.oneof(
      fc.constantFrom('Sun', ',', ' ', '01', '-', 'Mar', '2026', '12:01:00', 'GMT', '99', '.', '1e3', 'Infinity'),
      fc.string(),
      fc.nat().map(String),
    );
    const value = fc.oneof(
      fc.string(),
      fc.array(part).map((parts) => parts.join('')),
      fc.date().map(String),
      fc.double().map(String),
    );
    fc.assert(
      fc.property(fc.array(value), fc.oneof(fc.integer(), fc.double(), fc.constant(nowMs)), (values, now) => {
        const ms = parseRetryAfterMs(values, now);
        expect(ms === null || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('reads back every date that JavaScript prints as an HTTP date', () => {
    fc.assert(
      fc.property(fc.integer({ min: nowMs, max: nowMs + 10 ** 11 }), (ms) => {
        const second = Math.floor(ms / 1_000) * 1_000;
        expect(parseRetryAfterMs([new Date(second).toUTCString()], nowMs)).toBe(Math.max(0, second - nowMs));
      }),
    );
  });
});
