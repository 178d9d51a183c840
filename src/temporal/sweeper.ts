import type { EndpointHealthStore } from '../database/endpoint-health-store.js';
import type { ReplayStore } from '../database/replay-store.js';
import type { OverdueDelivery, SweepStore } from '../database/sweep-store.js';
import type { WaitingDeliveries } from '../database/waiting-deliveries.js';
import { isTerminal } from '../domain/closed-lists.js';
import type { Logger } from '../telemetry/logger.js';
import type { TemporalGateway } from './gateway.js';
import { WorkLoop } from './work-loop.js';

const sweepPauseMs = 1_000;
const concurrency = 16;
/** Letters are announced by their activity at once; this late a signal must have been lost. */
const letterGraceMs = 15_000;
const housekeepingEveryMs = 60_000;
const storeCheckEveryMs = 30_000;
/** So many endpoints' workflows are told in one sweep, and again after this long should that not have helped. */
const healthBatch = 100;
const healthAgainMs = 60_000;

export interface SweeperDependencies {
  readonly store: SweepStore;
  readonly waiting: WaitingDeliveries;
  readonly health: EndpointHealthStore;
  readonly replays: ReplayStore;
  readonly gateway: TemporalGateway;
  readonly housekeeping: () => Promise<void>;
  readonly log: Logger;
}

/** What a sweep met, for logs, metrics and tests. */
export interface SweepReport {
  readonly overdue: number;
  readonly started: number;
  readonly closed: number;
}

/** Finds what dispatching lost: open rows that nobody works on. Runs in every process, sweeps in one at a time. */
export class Sweeper {
  private readonly loop: WorkLoop;
  private lastHousekeeping = 0;
  private lastStoreCheck = 0;

  constructor(private readonly deps: SweeperDependencies) {
    this.loop = new WorkLoop({
      work: () => deps.store.exclusively(async () => void (await this.sweepOnce())),
      everyMs: 0,
      restMs: sweepPauseMs,
      away: 'sweeping has to wait: Postgres or Temporal is away',
      back: 'sweeping again',
      log: deps.log,
    });
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  async sweepOnce(): Promise<SweepReport> {
    const { store, waiting, gateway } = this.deps;
    await store.freeDeadLeases();
    for (const endpointId of await store.endpointsToSettle()) {
      await waiting.closeAllOf(endpointId);
    }
    const report = await this.sweepDeliveries(await store.overdue());
    await this.tellEndpoints();
    await this.sweepReplays();
    for (const endpointId of await store.endpointsWithUnannouncedLetters(letterGraceMs))
      await gateway.letterAdded(endpointId);
    if (Date.now() - this.lastHousekeeping > housekeepingEveryMs) {
      this.lastHousekeeping = Date.now();
      await this.deps.housekeeping();
    }
    return report;
  }

  /** Endpoints' workflows that missed a change or a deadline; all of them where Temporal has lost its store. */
  private async tellEndpoints(): Promise<void> {
    const { health, gateway, log } = this.deps;
    if (Date.now() - this.lastStoreCheck > storeCheckEveryMs) {
      const storeId = await gateway.storeId();
      if (storeId !== null && (await health.noteStore(storeId)))
        log.warn({}, "Temporal's store is another one than before: every endpoint's workflow is started anew");
      this.lastStoreCheck = Date.now();
    }
    const told: string[] = [];
    try {
      for (const endpointId of await health.toTell(healthBatch)) {
        await gateway.endpointChanged(endpointId);
        told.push(endpointId);
      }
    } finally {
      await health.told(told, healthAgainMs);
    }
  }

  /** Replays that nobody works on go on, but for those whose workflow was terminated by hand. */
  private async sweepReplays(): Promise<void> {
    const { replays, gateway } = this.deps;
    const looked: string[] = [];
    try {
      for (const id of await replays.toSweep()) {
        if ((await gateway.describeReplay(id)) === 'terminated') await replays.closeTerminated(id);
        else await gateway.replayChanged(id);
        looked.push(id);
      }
    } finally {
      await replays.lookAgainLater(looked);
    }
  }

  private async sweepDeliveries(overdue: readonly OverdueDelivery[]): Promise<SweepReport> {
    const later: string[] = [];
    const report = { overdue: overdue.length, started: 0, closed: 0 };
    const queue = [...overdue];
    const work = async (): Promise<void> => {
      for (let row = queue.shift(); row && !this.loop.isStopped; row = queue.shift()) {
        const done = await this.sweepOne(row);
        if (done === 'closed') report.closed += 1;
        else later.push(row.id);
        if (done === 'started') report.started += 1;
      }
    };
    // Where Temporal is away the first failure ends the sweep; what was done until then is remembered.
    const results = await Promise.allSettled(Array.from({ length: Math.min(concurrency, overdue.length) }, work));
    await this.deps.store.lookAgainLater(later);
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
    return report;
  }

  /** Each step is safe against whatever happened since the one before: a start by machine never redelivers. */
  private async sweepOne(row: OverdueDelivery): Promise<'left' | 'started' | 'closed'> {
    const { gateway, store } = this.deps;
    switch (await gateway.describe(row.id)) {
      case 'running':
        if (row.wakeRequested && (await gateway.retryNow(row.id))) await store.woken(row.id, row.round);
        return 'left';
      case 'not_found':
        return (await gateway.startDelivery(row, 'sweeper', 'first')) === 'started' ? 'started' : 'left';
      case 'closed':
        return this.restart(row, false);
      case 'terminated':
        return this.restart(row, true);
    }
  }

  /** A workflow records before it closes: so the row is read again, after the workflow was seen closed. */
  private async restart(row: OverdueDelivery, byHand: boolean): Promise<'left' | 'started' | 'closed'> {
    const { gateway, store } = this.deps;
    const now = await store.statusOf(row.id);
    if (!now || isTerminal(now.status) || now.status === 'held') return 'closed';
    if (byHand && !now.wakeRequested) {
      await store.closeTerminated(row.id, now.round);
      return 'closed';
    }
    return (await gateway.startDelivery(row, 'sweeper', 'again')) === 'started' ? 'started' : 'left';
  }
}
