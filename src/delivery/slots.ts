export interface SlotLimits {
  readonly total: number;
  /** How long to wait for a free one. */
  readonly waitMs: number;
}

/** Whose request it is, and how many of them may be in flight at once. */
export interface SlotClaim {
  readonly key: string;
  readonly max: number;
}

interface Waiter {
  readonly max: number;
  readonly grant: (release: () => void) => void;
}

interface Lane {
  readonly key: string;
  taken: number;
  /** First come, first served. */
  readonly waiting: Set<Waiter>;
}

/**
 * Bounds what is in flight, in total and per key. A full key holds nobody else up; when all are taken, the next free one goes
 * to the key that has the fewest.
 */
export class Slots {
  /** Those in use: keys come and go. */
  readonly #lanes = new Map<string, Lane>();
  /** Those in which somebody waits. */
  readonly #crowded = new Set<Lane>();
  #total = 0;

  constructor(private readonly limits: SlotLimits) {}

  /** Resolves to the function that gives the slot back, or to null when none came free in time. */
  acquire({ key, max }: SlotClaim): Promise<(() => void) | null> {
    const lane = this.#laneOf(key);
    if (lane.waiting.size === 0 && this.#hasRoom(lane, max)) return Promise.resolve(this.#take(lane));
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#leave(lane, waiter);
        resolve(null);
      }, this.limits.waitMs);
      const waiter: Waiter = {
        max,
        grant: (release) => {
          clearTimeout(timer);
          resolve(release);
        },
      };
      lane.waiting.add(waiter);
      this.#crowded.add(lane);
    });
  }

  #laneOf(key: string): Lane {
    const known = this.#lanes.get(key);
    if (known) return known;
    const lane: Lane = { key, taken: 0, waiting: new Set() };
    this.#lanes.set(key, lane);
    return lane;
  }

  #hasRoom(lane: Lane, max: number): boolean {
    return this.#total < this.limits.total && lane.taken < max;
  }

  #take(lane: Lane): () => void {
    this.#total += 1;
    lane.taken += 1;
    let returned = false;
    return () => {
      if (returned) return;
      returned = true;
      this.#total -= 1;
      lane.taken -= 1;
      this.#grantNext();
      this.#forgetUnused(lane);
    };
  }

  #grantNext(): void {
    let best: { readonly lane: Lane; readonly waiter: Waiter } | null = null;
    for (const lane of this.#crowded) {
      const [waiter] = lane.waiting;
      if (waiter && this.#hasRoom(lane, waiter.max) && (best === null || lane.taken < best.lane.taken))
        best = { lane, waiter };
    }
    if (best === null) return;
    const release = this.#take(best.lane);
    this.#leave(best.lane, best.waiter);
    best.waiter.grant(release);
  }

  #leave(lane: Lane, waiter: Waiter): void {
    lane.waiting.delete(waiter);
    if (lane.waiting.size === 0) this.#crowded.delete(lane);
    this.#forgetUnused(lane);
  }

  #forgetUnused(lane: Lane): void {
    if (lane.taken === 0 && lane.waiting.size === 0) this.#lanes.delete(lane.key);
  }
}
