import { SeenDeliveries } from './seen-deliveries.js';

/** The newest event of an invoice. */
export interface State {
  readonly type: string;
  readonly at: string;
}

export interface Delivery {
  /** What to deduplicate on. */
  readonly key: string;
  readonly type: string;
  /** When the event happened: always UTC with milliseconds, so that its text sorts by time. */
  readonly at: string | null;
  readonly invoiceId: string | null;
}

export type Outcome = 'handled' | 'handled, but something newer was known' | 'handled already';

const maxInvoices = 10_000;

/**
 * What this service knows, and which deliveries it has handled. It lives in memory, and forgets on a restart. In your own service
 * all of `take` is one database transaction:
 *
 *     INSERT INTO handled (delivery_id) VALUES ($1) ON CONFLICT DO NOTHING  -- no row inserted: handled already
 *     UPDATE invoice SET state = $2, state_at = $3 WHERE id = $1 AND state_at < $3
 */
export class Inbox {
  readonly #seen = new SeenDeliveries();
  readonly #newest = new Map<string, State>();
  #sideEffects = 0;

  /** Handles a delivery, or finds that it was handled: says which. */
  take({ key, type, at, invoiceId }: Delivery): Outcome {
    // Webhooks arrive at least once. The key is the same through every retry and redelivery.
    const { isNew, entry } = this.#seen.note(key);
    if (!isNew) return 'handled already';
    entry.sideEffects++;
    this.#sideEffects++;
    if (at === null || invoiceId === null) return 'handled';
    // And in any order: what happened before the state that is known must not undo it.
    const known = this.#newest.get(invoiceId);
    if (known && known.at >= at) return 'handled, but something newer was known';
    this.#newest.delete(invoiceId);
    this.#newest.set(invoiceId, { type, at });
    const [oldest] = this.#newest.keys();
    if (this.#newest.size > maxInvoices && oldest !== undefined) this.#newest.delete(oldest);
    return 'handled';
  }

  stats(maxDeliveries: number) {
    const latest = this.#seen.latest(maxDeliveries);
    return {
      side_effects: this.#sideEffects,
      deliveries: Object.fromEntries(
        latest.map(({ id, requests, sideEffects }) => [id, { requests, side_effects: sideEffects }]),
      ),
      newest: Object.fromEntries(this.#newest),
    };
  }
}
