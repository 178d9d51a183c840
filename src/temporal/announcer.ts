import { setMaxListeners } from 'node:events';
import type { Announcer } from '../../activities/ports.js';
import type { ClosedDelivery } from '../database/waiting-deliveries.js';
import { pause } from '../pause.js';
import type { Logger } from '../telemetry/logger.js';
import { within } from '../within.js';
import type { TemporalGateway } from './gateway.js';

const tellTimeoutMs = 2_000;
/** One workflow takes a few hundred signals a second: telling must not hurt what else goes on. */
const tellsPerSecond = 100;
const queueLimit = 10_000;
/** Between two signals to one workflow. */
const tellPauseMs = 200;

/** Tells Temporal after a commit. What is lost is found by the sweeper, or by the workflows when their timers fire. */
export class TemporalAnnouncer implements Announcer {
  private readonly queue: ClosedDelivery[] = [];
  private telling: Promise<void> | null = null;
  /** Whom somebody tells just now, and whether there is more to tell. */
  private readonly lines = new Map<string, { again: boolean }>();
  private readonly abort = new AbortController();

  constructor(
    private readonly gateway: TemporalGateway,
    private readonly log: Logger,
  ) {
    // One for each workflow that was told a moment ago: many, and none for long.
    setMaxListeners(0, this.abort.signal);
  }

  letterAdded(endpointId: string): Promise<void> {
    return this.tell(`the dead letters of ${endpointId}`, () => this.gateway.letterAdded(endpointId));
  }

  endpointChanged(endpointId: string): Promise<void> {
    return this.tell(`the health of ${endpointId}`, () => this.gateway.endpointChanged(endpointId));
  }

  /** Lost, it is the sweeper's. */
  replayChanged(replayId: string): Promise<void> {
    return this.tell(replayId, () => this.gateway.replayChanged(replayId));
  }

  deliveriesClosed(closed: readonly ClosedDelivery[]): void {
    this.queue.push(...closed.slice(0, Math.max(0, queueLimit - this.queue.length)));
    this.telling ??= this.tellAll().finally(() => (this.telling = null));
  }

  async cancelRun(deliveryId: string, runId: string): Promise<void> {
    await this.gateway.cancel(deliveryId, runId);
  }

  async stop(): Promise<void> {
    this.abort.abort();
    await this.telling;
  }

  /** Signals carry nothing, so those that come while one is on its way are one: a flood of them would end the workflow. */
  private async tell(whom: string, signal: () => Promise<void>): Promise<void> {
    const line = this.lines.get(whom);
    if (line) {
      line.again = true;
      return;
    }
    this.lines.set(whom, { again: false });
    const told = this.tellOnce(whom, signal);
    void told.then(() => this.tellAgain(whom, signal));
    await told;
  }

  private async tellAgain(whom: string, signal: () => Promise<void>): Promise<void> {
    await pause(tellPauseMs, this.abort.signal);
    while (this.lines.get(whom)?.again && !this.abort.signal.aborted) {
      this.lines.set(whom, { again: false });
      await this.tellOnce(whom, signal);
      await pause(tellPauseMs, this.abort.signal);
    }
    this.lines.delete(whom);
  }

  private async tellOnce(whom: string, signal: () => Promise<void>): Promise<void> {
    const told = signal().catch((error: unknown) => {
      this.log.debug({ whom, err: error }, 'a workflow was not told; the sweeper will');
    });
    await within(tellTimeoutMs, told, undefined);
  }

  private async tellAll(): Promise<void> {
    for (let next = this.queue.shift(); next && !this.abort.signal.aborted; next = this.queue.shift()) {
      try {
        await (next.status === 'cancelled' ? this.gateway.cancel(next.id) : this.gateway.retryNow(next.id));
      } catch (error) {
        this.log.debug({ waiting: this.queue.length, err: error }, 'workflows were not told; their timers will');
        this.queue.length = 0;
        return;
      }
      await pause(1_000 / tellsPerSecond, this.abort.signal);
    }
  }
}
