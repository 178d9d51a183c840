import { pause } from '../pause.js';
import type { Logger } from '../telemetry/logger.js';

/** An engine that runs as our child. */
export interface Engine {
  readonly exited: Promise<unknown>;
  stop(): Promise<void>;
}

const firstPauseMs = 500;
const longestPauseMs = 10_000;

/** Keeps an embedded engine running: one that ends without being asked is started again, for as long as it takes. */
export class Supervisor<T extends Engine> {
  private readonly abort = new AbortController();
  private watching: Promise<void>;

  private constructor(
    private readonly name: string,
    private readonly startEngine: () => Promise<T>,
    private engine: T,
    private readonly log: Logger,
  ) {
    this.watching = this.watch();
  }

  /** The first start's failure is the caller's: there is somebody to read it. */
  static async start<T extends Engine>(
    name: string,
    startEngine: () => Promise<T>,
    log: Logger,
  ): Promise<Supervisor<T>> {
    return new Supervisor(name, startEngine, await startEngine(), log);
  }

  get current(): T {
    return this.engine;
  }

  async stop(): Promise<void> {
    this.abort.abort();
    await this.watching;
    await this.engine.stop();
  }

  private async watch(): Promise<void> {
    const { signal } = this.abort;
    const asked = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    let waitMs = firstPauseMs;
    while (!signal.aborted) {
      await Promise.race([this.engine.exited, asked]);
      if (signal.aborted) return;
      this.log.error({ engine: this.name }, `${this.name} ended without being asked: starting it again`);
      await pause(waitMs, signal);
      if (signal.aborted) return;
      try {
        this.engine = await this.startEngine();
        waitMs = firstPauseMs;
        this.log.info({ engine: this.name }, `${this.name} runs again`);
      } catch (error) {
        waitMs = Math.min(waitMs * 2, longestPauseMs);
        this.log.error({ engine: this.name, err: error }, `${this.name} does not start`);
      }
    }
  }
}
