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
    const { id, tenantId, endpointId, eventId, type, url, leased, fresh } = delivery;
    // What waits holds no more than it needs: `fresh` holds the event.
    const start = { id, tenantId, endpointId, eventId, type, url };
    if (leased && this.express) this.express.submit(start, fresh);
    else if (this.dispatcher.submit({ kind: 'start', delivery: start }) && fresh) this.attempts?.expect(id, fresh);
  }
}
