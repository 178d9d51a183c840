/**
 * Which deliveries were handled already. A delivery keeps its `delivery_id` through every retry and redelivery, so a second
 * request with the same id must not have its effect twice.
 *
 * This one lives in memory and forgets on a restart. In your own service keep the ids in the database, in the same transaction as
 * the effect: `INSERT INTO handled (delivery_id) VALUES ($1) ON CONFLICT DO NOTHING`.
 */
export interface SeenDelivery {
  readonly id: string;
  requests: number;
  sideEffects: number;
  expiresAtMs: number;
}

const day = 24 * 60 * 60 * 1_000;

export interface SeenDeliveriesOptions {
  /** At least 24 h: the default schedule alone takes 15. Counted from the last request of a delivery. */
  readonly keepMs?: number;
  /** Bounds the memory, about 200 bytes for each. Beyond it the oldest are forgotten early. */
  readonly maxEntries?: number;
  readonly now?: () => number;
}

export class SeenDeliveries {
  // A Map keeps its order of insertion, so the entry that expires first is always at its front.
  readonly #byId = new Map<string, SeenDelivery>();
  readonly #keepMs: number;
  readonly #maxEntries: number;
  readonly #now: () => number;

  constructor({ keepMs = 2 * day, maxEntries = 500_000, now = Date.now }: SeenDeliveriesOptions = {}) {
    this.#keepMs = Math.max(keepMs, day);
    this.#maxEntries = maxEntries;
    this.#now = now;
  }

  /** Notes a request; `isNew` says whether it is the first one of its delivery. */
  note(id: string): { readonly isNew: boolean; readonly entry: SeenDelivery } {
    const now = this.#now();
    this.#forget(now);
    const known = this.#byId.get(id);
    const entry = known ?? { id, requests: 0, sideEffects: 0, expiresAtMs: 0 };
    entry.requests++;
    entry.expiresAtMs = now + this.#keepMs;
    this.#byId.delete(id);
    this.#byId.set(id, entry);
    return { isNew: known === undefined, entry };
  }

  /** The newest, at most `limit`. */
  latest(limit: number): readonly SeenDelivery[] {
    return [...this.#byId.values()].slice(-limit);
  }

  #forget(now: number): void {
    for (const [id, entry] of this.#byId) {
      if (entry.expiresAtMs > now && this.#byId.size < this.#maxEntries) return;
      this.#byId.delete(id);
    }
  }
}
