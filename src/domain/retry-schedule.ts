/** How long to wait after a failed attempt. */

/** Jitter is ±20 % on every wait: a uniform draw from [0, 1) becomes a factor from [0.8, 1.2). */
export function jitterFactor(draw: number): number {
  return 0.8 + 0.4 * draw;
}

/** Spreads deliveries that wait for one endpoint's rest: the jitter as a factor from [1, 1.2), since a rest is never cut short. */
export function restStretch(factor: number): number {
  return 1 + (factor - 0.8) / 2;
}

/** An endpoint may ask for at most this long a rest. */
export const maxRetryAfterMs = 24 * 60 * 60 * 1_000;

export interface RetryWait {
  /** Waits of the schedule, in milliseconds. */
  readonly waitsMs: readonly number[];
  /** Attempts spent in this round, the one just failed included (1, 2, …). */
  readonly attemptsSpent: number;
  /** From {@link jitterFactor}. */
  readonly factor: number;
  /** What the endpoint asked for; it can only lengthen the wait. */
  readonly retryAfterMs: number | null;
  /** The least wait after credentials were refused by an endpoint that used to accept them, else 0. */
  readonly refusedWaitMs: number;
}

/** The wait in whole milliseconds, or null when the schedule is exhausted. */
export function retryWaitMs({ waitsMs, attemptsSpent, factor, retryAfterMs, refusedWaitMs }: RetryWait): number | null {
  const base = waitsMs[attemptsSpent - 1];
  if (base === undefined) return null;
  return Math.round(Math.max(Math.max(base, refusedWaitMs) * factor, Math.min(retryAfterMs ?? 0, maxRetryAfterMs)));
}
