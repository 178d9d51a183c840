import type {
  AttemptOutcome,
  RecordAttemptInput,
  AttemptInput,
} from '../../activities/contracts/delivery-activities.js';
import type { LeaseStore } from '../database/lease-store.js';
import { type FreshDelivery, withOwnData } from '../database/known-endpoints.js';
import { leaseMs, leaseRenewalMs } from '../database/lease-sql.js';
import { jitterFactor } from '../domain/retry-schedule.js';
import { pause } from '../pause.js';
import { within } from '../within.js';
import type { Logger } from '../telemetry/logger.js';
import type { DispatchJob } from '../temporal/dispatcher.js';
import { FairQueue } from '../temporal/fair-queue.js';
import type { DeliveryStart } from '../temporal/gateway.js';

/**
 * An attempt that takes longer than so many looks gives its place to others, and what else goes to its endpoint gets workflows.
 * Looks are counted, not time: when it is this process that is slow, there are fewer of them.
 */
const looksUntilSlow = 8;
const lookEveryMs = 250;
/** Characters of data that wait in memory; what waits beyond it is read when its turn comes. */
const mostDataWaiting = 16 * 1024 * 1024;
const recordAgainMs = 1_000;
/** Longer than any attempt: what is in flight at a stop finishes and is recorded, unless the database is away. */
const stopPatienceMs = 35_000;

/** Makes attempts: the activities' own code. */
export interface AttemptMaker {
  run(input: AttemptInput, lane: 'express', fresh: FreshDelivery | null): Promise<AttemptOutcome>;
  recordSent(input: RecordAttemptInput): Promise<AttemptOutcome>;
}

export interface ExpressLimits {
  /** Deliveries that wait; while so many do, those that come have workflows from the start. */
  readonly waiting: number;
  /** Attempts at once, in all and of one endpoint. */
  readonly atOnce: number;
  readonly atOncePerEndpoint: number;
}

export interface ExpressLaneDependencies {
  /** This process, as its leases name it; no other process ever has the same. */
  readonly holder: string;
  readonly attempts: AttemptMaker;
  readonly leases: LeaseStore;
  readonly limits: ExpressLimits;
  /** Never waits and never fails: what it doesn't take is the sweeper's. */
  readonly dispatch: (job: DispatchJob) => void;
  readonly log: Logger;
  readonly now?: () => number;
}

interface Job {
  readonly delivery: DeliveryStart;
  /** Null where it has to be read when its turn comes. */
  fresh: FreshDelivery | null;
  waits: boolean;
  /** Characters of data that it holds while it waits. */
  held: number;
}

interface InFlight {
  readonly endpointId: string;
  looks: number;
}

/**
 * First attempts without a workflow. The delivery's row is leased to this process from its very insertion; a workflow is started
 * only for what did not succeed at once. Should the process die, its leases run out, and the sweeper starts the workflows.
 */
export class ExpressLane {
  private readonly queue: FairQueue<Job>;
  /** Those that wait or are in flight. Whatever else is leased to us got lost on its way here. */
  private readonly ours = new Set<string>();
  /** Those that have a place of the lane. */
  private readonly inFlight = new Set<InFlight>();
  /** Those that took so long that they gave their places to others. */
  private readonly slow = new Set<InFlight>();
  private dataWaiting = 0;
  private readonly abort = new AbortController();
  private readonly now: () => number;
  private renewedAt = Number.NEGATIVE_INFINITY;
  private renewing: Promise<void> = Promise.resolve();
  private looking: NodeJS.Timeout | undefined;
  private idle: (() => void)[] = [];

  constructor(private readonly deps: ExpressLaneDependencies) {
    this.now = deps.now ?? (() => performance.now());
    // What is committed with a lease has its place: the limit is looked at before.
    const { atOncePerEndpoint: activePerKey } = deps.limits;
    this.queue = new FairQueue({ waiting: Number.POSITIVE_INFINITY, activePerKey });
  }

  start(): void {
    this.renewing = this.keepRenewing();
    this.looking = setInterval(() => this.lookForSlow(), lookEveryMs).unref();
  }

  /** In whose name deliveries are to be inserted; null while the lane takes none. */
  get leaseHolder(): string | null {
    if (this.abort.signal.aborted || this.queue.size >= this.deps.limits.waiting) return null;
    return this.now() - this.renewedAt < leaseMs / 2 ? this.deps.holder : null;
  }

  /** A delivery that was committed with a lease of ours. */
  submit(delivery: DeliveryStart, fresh: FreshDelivery | null): void {
    this.ours.add(delivery.id);
    if (this.abort.signal.aborted || this.isSlow(delivery.endpointId)) return void this.handOver(delivery);
    const job = { delivery, fresh, waits: true, held: 0 };
    this.queue.add(delivery.endpointId, job);
    this.pump();
    if (job.waits) this.hold(job);
  }

  /** What waits keeps its event in memory, where that isn't too much. */
  private hold(job: Job): void {
    if (!job.fresh) return;
    const length = job.fresh.event.data?.length ?? 0;
    if (this.dataWaiting + length > mostDataWaiting) {
      job.fresh = null;
      return;
    }
    job.held = length;
    this.dataWaiting += length;
    job.fresh = withOwnData(job.fresh);
  }

  private letGo(job: Job): Job {
    job.waits = false;
    this.dataWaiting -= job.held;
    return job;
  }

  /** Deliveries that wait or are in flight. */
  get backlog(): number {
    return this.ours.size;
  }

  /** Lets what is in flight finish; what waits is the sweeper's, at once. */
  async stop(): Promise<void> {
    this.abort.abort();
    await this.renewing;
    await Promise.all(this.queue.drain().map((job) => this.handOver(this.letGo(job).delivery)));
    // Without renewals in the meantime leases would run out, and requests in flight be made twice.
    const renewal = setInterval(() => void this.renew(), leaseRenewalMs);
    const idle = this.ours.size === 0 ? Promise.resolve() : new Promise<void>((resolve) => this.idle.push(resolve));
    await within(stopPatienceMs, idle, undefined);
    clearInterval(renewal);
    clearInterval(this.looking);
    await this.deps.leases.forget(this.deps.holder).catch(() => undefined);
  }

  private pump(): void {
    while (this.inFlight.size < this.deps.limits.atOnce) {
      const next = this.queue.take();
      if (!next) return;
      void this.attempt(this.letGo(next.job))
        .finally(next.done)
        .then(() => this.pump());
    }
  }

  private async attempt({ delivery, fresh }: Job): Promise<void> {
    const { id, endpointId } = delivery;
    const mine: InFlight = { endpointId, looks: 0 };
    this.inFlight.add(mine);
    const input: AttemptInput = {
      deliveryId: id,
      runId: this.deps.holder,
      sequence: 1,
      jitterFactor: jitterFactor(Math.random()),
      intent: 'resume',
      force: false,
    };
    try {
      await this.goOn(delivery, await this.recorded(input, await this.deps.attempts.run(input, 'express', fresh)));
    } catch (error) {
      this.deps.log.error({ delivery_id: id, err: error }, 'express attempt failed unexpectedly: its workflow goes on');
      await this.handOver(delivery);
    } finally {
      this.inFlight.delete(mine);
      this.slow.delete(mine);
    }
  }

  /** What was sent is recorded before anybody else may send it again, however long the database is away. */
  private async recorded(input: AttemptInput, outcome: AttemptOutcome): Promise<AttemptOutcome> {
    let last = outcome;
    while (last.kind === 'unrecorded') {
      const { sent } = last;
      await pause(recordAgainMs);
      last = await this.deps.attempts
        .recordSent({ ...input, sent })
        .catch(() => ({ kind: 'unrecorded', sent }) as const);
    }
    return last;
  }

  private async goOn(delivery: DeliveryStart, outcome: AttemptOutcome): Promise<void> {
    switch (outcome.kind) {
      case 'closed':
        // The record of a success has ended the lease; what somebody else closed still has it.
        return outcome.status === 'succeeded' ? this.done(delivery.id) : this.giveBack(delivery);
      case 'held':
        // Whoever releases it starts its workflow.
        return this.giveBack(delivery);
      case 'unknown_delivery':
        return this.done(delivery.id);
      case 'failed':
        // The record statement has ended the lease.
        this.done(delivery.id);
        return this.deps.dispatch({ kind: 'start', delivery });
      case 'use_ordinary':
      case 'not_sent':
      case 'not_due':
      case 'superseded':
      case 'unrecorded':
        return this.handOver(delivery);
    }
  }

  /** The workflow makes the attempt. */
  private async handOver(delivery: DeliveryStart): Promise<void> {
    await this.giveBack(delivery);
    this.deps.dispatch({ kind: 'start', delivery });
  }

  /** Where that can't be written now, the lease is found to be nobody's later. */
  private async giveBack({ id }: DeliveryStart): Promise<void> {
    try {
      await this.deps.leases.giveBack(this.deps.holder, id);
    } catch (error) {
      this.deps.log.warn({ delivery_id: id, err: error }, 'lease not given back yet: it will be found');
    } finally {
      this.done(id);
    }
  }

  private done(id: string): void {
    this.ours.delete(id);
    if (this.ours.size === 0) for (const resolve of this.idle.splice(0)) resolve();
  }

  private lookForSlow(): void {
    for (const one of this.inFlight) {
      one.looks += 1;
      if (one.looks < looksUntilSlow) continue;
      this.inFlight.delete(one);
      this.slow.add(one);
      for (const waiting of this.queue.drain(one.endpointId)) void this.handOver(this.letGo(waiting).delivery);
    }
    this.pump();
  }

  private isSlow(endpointId: string): boolean {
    for (const one of this.slow) if (one.endpointId === endpointId) return true;
    return false;
  }

  private async keepRenewing(): Promise<void> {
    const { signal } = this.abort;
    for (let turn = 0; !signal.aborted; turn += 1) {
      await this.renew();
      if (turn % 2 === 1) await this.giveBackStrays();
      await pause(leaseRenewalMs, signal);
    }
  }

  private async renew(): Promise<void> {
    const at = this.now();
    try {
      await this.deps.leases.renew(this.deps.holder);
      this.renewedAt = at;
    } catch {
      // Without a renewal the lane takes nothing new; publishing says itself that the database is away.
    }
  }

  /** A commit whose answer got lost has leases that nobody here knows of. Together: the next renewal waits for it. */
  private async giveBackStrays(): Promise<void> {
    const { leases, holder } = this.deps;
    try {
      const strays = (await leases.overdue(holder)).filter((id) => !this.ours.has(id));
      await Promise.all(strays.map((id) => leases.giveBack(holder, id)));
    } catch {
      // Again in a second.
    }
  }
}
