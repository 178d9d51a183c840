import type { Dispatcher } from '../temporal/dispatcher.js';
import type { DeliveryStart } from '../temporal/gateway.js';
import type { ExpressLane } from './express-lane.js';

/** Sees to the first attempts of what was published: by a workflow each, or by the express lane. */
export class FirstAttempts {
  constructor(
    private readonly dispatcher: Dispatcher,
    private readonly express: ExpressLane | null,
  ) {}

  /** In whose name deliveries are to be inserted; null: nobody's. */
  get leaseHolder(): string | null {
    return this.express?.leaseHolder ?? null;
  }

  /** Never waits and never fails: what gets lost is found by the sweeper. */
  begin(delivery: DeliveryStart & { readonly leased: boolean }): void {
    if (delivery.leased && this.express) this.express.submit(delivery);
    else this.dispatcher.submit({ kind: 'start', delivery });
  }
}
