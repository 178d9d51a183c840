import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jitterFactor, maxRetryAfterMs, restStretch, retryWaitMs } from '../../src/domain/retry-schedule.js';

const waitsMs = [60_000, 300_000];

describe('the wait after a failed attempt', () => {
  it('is the schedule’s within 20 %, and null when the schedule is exhausted', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (draw) => {
        const factor = jitterFactor(draw);
        const wait = (attemptsSpent: number) =>
          retryWaitMs({ waitsMs, attemptsSpent, factor, retryAfterMs: null, refusedWaitMs: 0 });
        expect(wait(1)).toBeGreaterThanOrEqual(48_000);
        expect(wait(1)).toBeLessThanOrEqual(72_000);
        expect(wait(2)).toBeGreaterThanOrEqual(240_000);
        expect(wait(3)).toBeNull();
      }),
    );
  });

  it.each([
    ['a Retry-After beyond it lengthens it', 120_000, 120_000],
    ['a Retry-After below it changes nothing', 1_000, 60_000],
    ['a Retry-After counts for at most a day', Number.MAX_SAFE_INTEGER, maxRetryAfterMs],
  ])('%s', (_, retryAfterMs, expected) => {
    expect(retryWaitMs({ waitsMs, attemptsSpent: 1, factor: 1, retryAfterMs, refusedWaitMs: 0 })).toBe(expected);
  });

  it('is at least the rest after refused credentials', () => {
    expect(retryWaitMs({ waitsMs, attemptsSpent: 1, factor: 1, retryAfterMs: null, refusedWaitMs: 1_800_000 })).toBe(
      1_800_000,
    );
  });

  it('spreads deliveries that wait for one rest, and never cuts it short', () => {
    expect(restStretch(jitterFactor(0))).toBeCloseTo(1);
    expect(restStretch(jitterFactor(0.999))).toBeCloseTo(1.2, 2);
  });
});
