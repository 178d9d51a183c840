import type { CancelInput } from '../../activities/contracts/delivery-activities.js';
import { DeliveryStore } from '../database/delivery-store.js';
import { PaceStore } from '../database/pace-store.js';
import { SweepStore } from '../database/sweep-store.js';
import { type ClosedDelivery, WaitingDeliveries } from '../database/waiting-deliveries.js';
import { Dispatcher } from '../temporal/dispatcher.js';
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
    const result = await super.startDelivery(...args);
    if (result === 'started') this.metrics.deliveryStarted(by);
    return result;
  }
}

export class CountedDispatcher extends Dispatcher {
  constructor(
    private readonly metrics: Metrics,
    ...rest: ConstructorParameters<typeof Dispatcher>
  ) {
    super(...rest);
  }

  protected override leftToSweeper(jobs: number): void {
    this.metrics.jobsLeftToSweeper(jobs);
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

  override async expireQueued(...args: Parameters<PaceStore['expireQueued']>): ReturnType<PaceStore['expireQueued']> {
    const expired = await super.expireQueued(...args);
    for (const { count } of expired) this.metrics.deliveryClosed('failed', 'queue_age_exceeded', count);
    return expired;
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

  protected override async cancelRow(input: CancelInput): Promise<boolean> {
    const cancelled = await super.cancelRow(input);
    if (cancelled) this.metrics.deliveryClosed('cancelled', 'cancelled_by_request');
    return cancelled;
  }
}

export class CountedSweeps extends SweepStore {
  constructor(
    private readonly metrics: Metrics,
    ...rest: ConstructorParameters<typeof SweepStore>
  ) {
    super(...rest);
  }

  override async closeTerminated(...args: Parameters<SweepStore['closeTerminated']>): Promise<boolean> {
    const closed = await super.closeTerminated(...args);
    if (closed) this.metrics.deliveryClosed('cancelled', 'terminated_by_operator');
    return closed;
  }
}

export class CountedWaiting extends WaitingDeliveries {
  constructor(
    private readonly metrics: Metrics,
    ...rest: ConstructorParameters<typeof WaitingDeliveries>
  ) {
    super(...rest);
  }

  override closeAllOf(
    endpointId: string,
    told: (closed: readonly ClosedDelivery[]) => void = () => undefined,
  ): Promise<number> {
    return super.closeAllOf(endpointId, (closed) => {
      this.count(closed);
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
    if (closed) this.count([closed]);
    return closed;
  }

  private count(closed: readonly ClosedDelivery[]): void {
    for (const { status, reason } of closed) if (status !== 'held') this.metrics.deliveryClosed(status, reason);
  }
}
