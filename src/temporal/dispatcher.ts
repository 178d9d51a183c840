import type { Logger } from '../telemetry/logger.js';
import { FairQueue } from './fair-queue.js';
import type { DeliveryStart, TemporalGateway } from './gateway.js';

/** More than this is the sweeper's. */
export const dispatchQueueLimit = 1_000;
/** A server that is busy makes each start wait for all that are on their way: fewer at once, and a quiet endpoint's takes less long. */
const concurrency = 16;
/** So that others need not wait for a burst of one endpoint. */
const concurrencyPerEndpoint = 4;
const breakerFailures = 3;
const breakerPauseMs = 1_000;

export type DispatchJob =
  | { readonly kind: 'start'; readonly delivery: DeliveryStart }
  /** Was held until now: its workflow has ended, or sleeps and doesn't know. */
  | { readonly kind: 'release'; readonly delivery: DeliveryStart; readonly round: number }
  | { readonly kind: 'redeliver'; readonly delivery: DeliveryStart; readonly round: number }
  | { readonly kind: 'cancel'; readonly deliveryId: string; readonly round: number };

/**
 * Hands committed deliveries to Temporal, outside of any request: a start takes seconds to fail where Temporal is away.
 * Endpoints take turns. What doesn't fit, fails, or is lost with the process is found by the sweeper.
 */
export class Dispatcher {
  private readonly queue = new FairQueue<DispatchJob>({
    waiting: dispatchQueueLimit,
    activePerKey: concurrencyPerEndpoint,
  });
  private active = 0;
  private failures = 0;
  private openUntil = 0;
  private stopped = false;
  private idle: (() => void)[] = [];

  constructor(
    private readonly gateway: TemporalGateway,
    private readonly onWoken: (deliveryId: string, round: number) => Promise<void>,
    private readonly log: Logger,
    private readonly now: () => number = Date.now,
  ) {}

  /** Never waits and never fails. False when the job was left to the sweeper; a later job may still take its place. */
  submit(job: DispatchJob): boolean {
    const added = this.stopped || this.now() < this.openUntil ? 'refused' : this.queue.add(laneOf(job), job);
    if (added !== 'added') this.leftToSweeper(1);
    this.pump();
    return added !== 'refused';
  }

  /** Jobs that wait or are at work. */
  get backlog(): number {
    return this.queue.size + this.active;
  }

  /** Finishes what is at work; what still waits is the sweeper's, after the next start. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.leftToSweeper(this.queue.drain().length);
    if (this.active > 0) await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  /** Of each job once: for who counts them. */
  protected leftToSweeper(_jobs: number): void {}

  private pump(): void {
    while (this.active < concurrency) {
      const next = this.queue.take();
      if (!next) return;
      this.active += 1;
      void this.work(next.job).finally(() => {
        this.active -= 1;
        next.done();
        if (this.active === 0 && this.queue.size === 0) for (const resolve of this.idle.splice(0)) resolve();
        this.pump();
      });
    }
  }

  private async work(job: DispatchJob): Promise<void> {
    try {
      if (this.now() < this.openUntil) return this.leftToSweeper(1);
      await this.hand(job);
      this.failures = 0;
    } catch (error) {
      this.failures += 1;
      this.leftToSweeper(1);
      if (this.failures < breakerFailures) return;
      if (this.now() >= this.openUntil)
        this.log.warn({ err: error, waiting: this.queue.size }, 'Temporal is away: deliveries are left to the sweeper');
      this.openUntil = this.now() + breakerPauseMs;
      this.leftToSweeper(this.queue.drain().length);
    }
  }

  private async hand(job: DispatchJob): Promise<void> {
    switch (job.kind) {
      case 'start':
        await this.gateway.startDelivery(job.delivery, 'dispatcher', 'first');
        return;
      case 'release': {
        const { id } = job.delivery;
        const known = (await this.gateway.startDelivery(job.delivery, 'dispatcher', 'again')) === 'started';
        if (known || (await this.gateway.retryNow(id))) await this.onWoken(id, job.round);
        return;
      }
      case 'redeliver':
        await this.gateway.redeliver(job.delivery);
        await this.onWoken(job.delivery.id, job.round);
        return;
      case 'cancel':
        await this.gateway.cancelRound(job.deliveryId, job.round);
        return;
    }
  }
}

/** Cancellations are few and don't say whose they are. */
function laneOf(job: DispatchJob): string {
  return job.kind === 'cancel' ? 'cancellations' : job.delivery.endpointId;
}
