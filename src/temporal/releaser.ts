import type { BacklogStore } from '../database/backlog-store.js';
import type { PaceStore, WaitingEndpoint } from '../database/pace-store.js';
import { riseSeconds, risenTo } from '../domain/pacing.js';
import type { SweepStore } from '../database/sweep-store.js';
import { slotHorizonMs } from '../database/pacing-sql.js';
import type { Logger } from '../telemetry/logger.js';
import type { Dispatcher } from './dispatcher.js';
import { WorkLoop } from './work-loop.js';

const releaseEveryMs = 1_000;
/** To one endpoint, at once. */
const maxAtOnce = 200;
const expireEveryMs = 10_000;
const expireBatch = 1_000;
const backlogEveryMs = 60_000;

export interface ReleaserDependencies {
  readonly paces: PaceStore;
  readonly sweeps: SweepStore;
  readonly backlogs: BacklogStore;
  readonly dispatcher: Dispatcher;
  /** What waits for its turn for longer than this is given up. */
  readonly queueAgeMs: number;
  readonly letterAdded: (endpointId: string) => Promise<void>;
  readonly log: Logger;
}

/**
 * Lets held deliveries go, oldest first, at the rate that their endpoint takes: one at a time while it is down, 1, 2, 4, … a second
 * when it answers again, in the slots of its rate limit where it has one. Runs in every process, releases in one at a time.
 */
export class Releaser {
  private readonly loop: WorkLoop;
  private readonly timers = new Set<NodeJS.Timeout>();
  private lastExpiry = 0;
  private lastBacklog = 0;

  constructor(private readonly deps: ReleaserDependencies) {
    this.loop = new WorkLoop({
      work: () => deps.sweeps.exclusively(async () => void (await this.releaseOnce()), 'release'),
      everyMs: releaseEveryMs,
      restMs: 50,
      away: 'releasing has to wait: Postgres is away',
      back: 'releasing again',
      log: deps.log,
    });
  }

  start(): void {
    this.loop.start();
  }

  /** What was to go a little later is started by the sweeper, after the next start. */
  async stop(): Promise<void> {
    const stopped = this.loop.stop();
    for (const timer of this.timers) clearTimeout(timer);
    await stopped;
  }

  /** Returns how many were released. */
  async releaseOnce(): Promise<number> {
    const { paces } = this.deps;
    let released = 0;
    const endpoints = await paces.waitingEndpoints();
    for (const endpoint of endpoints) {
      if (this.loop.isStopped) return released;
      released += await this.releaseFor(endpoint);
    }
    if (Date.now() - this.lastBacklog > backlogEveryMs) {
      this.lastBacklog = Date.now();
      await this.deps.backlogs.warn(endpoints.map(({ id }) => id));
    }
    if (Date.now() - this.lastExpiry > expireEveryMs) {
      this.lastExpiry = Date.now();
      for (const { endpointId } of await paces.expireQueued(this.deps.queueAgeMs, expireBatch))
        await this.deps.letterAdded(endpointId);
    }
    return released;
  }

  private async releaseFor(endpoint: WaitingEndpoint): Promise<number> {
    const { paces, dispatcher } = this.deps;
    const count = await this.countFor(endpoint);
    if (count <= 0) return 0;
    const rate = endpoint.ratePerSecond;
    const rising = endpoint.risingForMs !== null;
    const deliveries =
      rate === null
        ? await paces.release(endpoint.id, count, releaseEveryMs / count, 'spread')
        : await paces.release(endpoint.id, count, 1_000 / (rising ? Math.min(rate, count) : rate), 'slots');
    if (rising && deliveries.length > 0) await paces.countReleased(endpoint.id, deliveries.length);
    for (const delivery of deliveries)
      this.later(delivery.inMs, () => dispatcher.submit({ kind: 'release', delivery, round: delivery.round }));
    return deliveries.length;
  }

  /** How many the endpoint takes until the next look. */
  private async countFor(endpoint: WaitingEndpoint): Promise<number> {
    const { paces } = this.deps;
    if (endpoint.restsForMs > 0) return 0;
    if (endpoint.pace === 'probing') {
      if (!endpoint.probeFree) return 0;
      return (await paces.takeProbe(endpoint.id, endpoint.timeoutMs)) ? 1 : 0;
    }
    const free = endpoint.ratePerSecond === null ? maxAtOnce : freeSlots(endpoint.ratePerSecond, endpoint.slotInMs);
    if (endpoint.risingForMs === null) return Math.min(free, maxAtOnce);
    if (endpoint.risingForMs >= riseSeconds * 1_000) {
      await paces.open(endpoint.id);
      return Math.min(free, maxAtOnce);
    }
    return Math.min(free, maxAtOnce, risenTo(endpoint.risingForMs) - endpoint.released);
  }

  private later(inMs: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      work();
    }, inMs);
    this.timers.add(timer);
  }
}

/** Slots that begin within the horizon: far enough ahead that none is lost before the next look. */
function freeSlots(ratePerSecond: number, slotInMs: number): number {
  return Math.floor(((slotHorizonMs - slotInMs) * ratePerSecond) / 1_000);
}
