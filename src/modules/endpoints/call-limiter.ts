/** Calls by hand are for looking, not for load: an endpoint gets one a second, and this many at the same time. */
export const maxCallsAtOnce = 4;
export const callIntervalMs = 1_000;

interface Calls {
  running: number;
  lastAt: number;
}

/** Limits calls per endpoint, in this process. */
export class CallLimiter {
  readonly #calls = new Map<string, Calls>();

  constructor(private readonly now: () => number = Date.now) {}

  /** Runs the call, or returns null when it would be one too many. */
  async run<T>(endpointId: string, call: () => Promise<T>): Promise<T | null> {
    const now = this.now();
    const calls = this.#calls.get(endpointId) ?? { running: 0, lastAt: Number.NEGATIVE_INFINITY };
    if (calls.running >= maxCallsAtOnce || now - calls.lastAt < callIntervalMs) return null;
    this.#forgetIdle(now);
    calls.running += 1;
    calls.lastAt = now;
    this.#calls.set(endpointId, calls);
    try {
      return await call();
    } finally {
      calls.running -= 1;
    }
  }

  #forgetIdle(now: number): void {
    for (const [id, { running, lastAt }] of this.#calls) {
      if (running === 0 && now - lastAt >= callIntervalMs) this.#calls.delete(id);
    }
  }
}
