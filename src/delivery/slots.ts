export interface SlotLimits {
  readonly total: number;
  readonly perKey: number;
  /** How long to wait for a free one. */
  readonly waitMs: number;
}

interface Waiter {
  readonly key: string;
  readonly grant: () => void;
}

/** Bounds what is in flight, in total and per key. First come, first served, but a full key holds nobody else up. */
export class Slots {
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Set<Waiter>();
  #total = 0;

  constructor(private readonly limits: SlotLimits) {}

  /** Resolves to the function that gives the slot back, or to null when none came free in time. */
  acquire(key: string): Promise<(() => void) | null> {
    if (this.#hasRoom(key)) return Promise.resolve(this.#take(key));
    return new Promise((resolve) => {
      const waiter: Waiter = {
        key,
        grant: () => {
          clearTimeout(timer);
          this.#waiting.delete(waiter);
          resolve(this.#take(key));
        },
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(waiter);
        resolve(null);
      }, this.limits.waitMs);
      this.#waiting.add(waiter);
    });
  }

  #hasRoom(key: string): boolean {
    return this.#total < this.limits.total && (this.#taken.get(key) ?? 0) < this.limits.perKey;
  }

  #take(key: string): () => void {
    this.#total += 1;
    this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1);
    let returned = false;
    return () => {
      if (returned) return;
      returned = true;
      this.#giveBack(key);
    };
  }

  #giveBack(key: string): void {
    this.#total -= 1;
    const left = (this.#taken.get(key) ?? 1) - 1;
    if (left === 0) this.#taken.delete(key);
    else this.#taken.set(key, left);
    for (const waiter of this.#waiting) {
      if (this.#hasRoom(waiter.key)) return waiter.grant();
    }
  }
}
