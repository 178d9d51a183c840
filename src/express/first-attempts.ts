import type { Dispatcher } from '../temporal/dispatcher.js';
import type { AttemptStore } from '../database/attempt-store.js';
import type { NewDelivery } from '../database/event-store.js';
import type { ExpressLane } from './express-lane.js';

/** Sees to the first attempts of what was published: by a workflow each, or by the express lane. */
export class FirstAttempts {
  constructor(
    private readonly dispatcher: Dispatcher,
    private readonly express: ExpressLane | null,
    /** Where workflows run in this process: what makes their attempts. */
    private readonly attempts: Pick<AttemptStore, 'expect'> | null,
  ) {}

  /** In whose name deliveries are to be inserted; null: nobody's. */
  get leaseHolder(): string | null {
    return this.express?.leaseHolder ?? null;
  }

  /** Never waits and never fails: what gets lost is found by the sweeper. */
  begin(delivery: NewDelivery): void {
    if (delivery.leased && this.express) this.express.submit(delivery, delivery.fresh);
    else {
      if (delivery.fresh) this.attempts?.expect(delivery.id, delivery.fresh);
      this.dispatcher.submit({ kind: 'start', delivery });
    }
  }
}
