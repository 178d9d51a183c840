import { DeliveryStore } from '../database/delivery-store.js';
import type { GaugeStore } from '../database/gauge-store.js';
import { PaceStore } from '../database/pace-store.js';
import { SweepStore } from '../database/sweep-store.js';
import { type ClosedDelivery, WaitingDeliveries } from '../database/waiting-deliveries.js';
import { type DispatchJob, Dispatcher } from '../temporal/dispatcher.js';
import { TemporalGateway } from '../temporal/gateway.js';
import type { Metrics } from './metrics.js';

/** Those who start, release and close deliveries, with what they do counted. */

export class CountedGateway extends TemporalGateway {
  constructor(
    private readonly metrics: Metrics,
    ...rest: ConstructorParameters<typeof TemporalGateway>
  ) {
    super(...rest);
  }

  override async startDelivery(
    ...args: Parameters<TemporalGateway['startDelivery']>
  ): ReturnType<TemporalGateway['startDelivery']> {
    const [, by] = args;
    try {
      const result = await super.startDelivery(...args);
      if (result === 'started') this.metrics.deliveryStarted(by);
      return result;
    } catch (error) {
      if (by === 'dispatcher') this.metrics.jobLeftToSweeper();
      throw error;
    }
  }
}

export class CountedDispatcher extends Dispatcher {
  constructor(
    private readonly metrics: Metrics,
    ...rest: ConstructorParameters<typeof Dispatcher>
  ) {
    super(...rest);
  }

  override submit(job: DispatchJob): boolean {
    const accepted = super.submit(job);
    if (!accepted) this.metrics.jobLeftToSweeper();
    return accepted;
  }
}

export class CountedPaces extends PaceStore {
  constructor(
    private readonly metrics: Metrics,
    ...rest: ConstructorParameters<typeof PaceStore>
  ) {
    super(...rest);
  }

  override async release(...args: Parameters<PaceStore['release']>): ReturnType<PaceStore['release']> {
    const released = await super.release(...args);
    this.metrics.deliveriesReleased(released.length);
    return released;
  }
}

export class CountedDeliveries extends DeliveryStore {
  constructor(
    private readonly metrics: Metrics,
    ...rest: ConstructorParameters<typeof DeliveryStore>
  ) {
    super(...rest);
  }

  override async cancel(...args: Parameters<DeliveryStore['cancel']>): ReturnType<DeliveryStore['cancel']> {
    const result = await super.cancel(...args);
    if (result?.kind === 'cancelled') this.metrics.deliveryClosed('cancelled', 'cancelled_by_request');
    return result;
  }
}

export class CountedSweeps extends SweepStore {
  constructor(
    private readonly metrics: Metrics,
    ...rest: ConstructorParameters<typeof SweepStore>
  ) {
    super(...rest);
  }

  override async closeTerminated(...args: Parameters<SweepStore['closeTerminated']>): Promise<void> {
    await super.closeTerminated(...args);
    this.metrics.deliveryClosed('cancelled', 'terminated_by_operator');
  }
}

export class CountedWaiting extends WaitingDeliveries {
  constructor(
    private readonly metrics: Metrics,
    private readonly gauges: GaugeStore,
    ...rest: ConstructorParameters<typeof WaitingDeliveries>
  ) {
    super(...rest);
  }

  override closeAllOf(
    endpointId: string,
    told: (closed: readonly ClosedDelivery[]) => void = () => undefined,
  ): Promise<number> {
    return super.closeAllOf(endpointId, (closed) => {
      void this.count(closed);
      told(closed);
    });
  }

  override async closeOne(deliveryId: string): Promise<ClosedDelivery | null> {
    return this.counted(await super.closeOne(deliveryId));
  }

  override async closeWithoutPayload(deliveryId: string): Promise<ClosedDelivery | null> {
    return this.counted(await super.closeWithoutPayload(deliveryId));
  }

  private counted(closed: ClosedDelivery | null): ClosedDelivery | null {
    if (closed) void this.count([closed]);
    return closed;
  }

  /** Nobody waits for it, and a failure costs a figure. */
  private async count(closed: readonly ClosedDelivery[]): Promise<void> {
    const ids = closed.filter(({ status }) => status !== 'held').map(({ id }) => id);
    if (ids.length === 0) return;
    try {
      for (const { status, reason, count } of await this.gauges.reasonsOf(ids))
        this.metrics.deliveryClosed(status, reason, count);
    } catch {
      // Whoever closed them is told of a database that is away.
    }
  }
}
