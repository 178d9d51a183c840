import { pause } from '../pause.js';
import type { Logger } from '../telemetry/logger.js';

export interface WorkLoopOptions {
  readonly work: () => Promise<unknown>;
  /** From beginning to beginning, as far as the work doesn't take longer. */
  readonly everyMs: number;
  /** Between two of them, at least. */
  readonly restMs: number;
  /** What is said when it begins to fail. */
  readonly away: string;
  readonly back: string;
  readonly log: Logger;
}

/** Does its work again and again until it is stopped. What fails is tried again, and said once an outage. */
export class WorkLoop {
  private readonly abort = new AbortController();
  private running: Promise<void> = Promise.resolve();
  private isAway = false;

  constructor(private readonly options: WorkLoopOptions) {}

  get isStopped(): boolean {
    return this.abort.signal.aborted;
  }

  start(): void {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.abort.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { everyMs, restMs } = this.options;
    while (!this.isStopped) {
      const startedAt = Date.now();
      await this.workOnce();
      await pause(Math.max(restMs, everyMs - (Date.now() - startedAt)), this.abort.signal);
    }
  }

  private async workOnce(): Promise<void> {
    const { work, away, back, log } = this.options;
    try {
      await work();
      if (this.isAway) log.info({}, back);
      this.isAway = false;
    } catch (error) {
      if (!this.isAway) log.warn({ err: error }, away);
      this.isAway = true;
    }
  }
}
