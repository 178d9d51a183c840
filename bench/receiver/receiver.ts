import { Child } from '../child.js';
import type { Arrivals } from '../load/load.js';

/** The recording receiver's process. */
export class Receiver {
  private constructor(private readonly child: Child) {}

  static async start(): Promise<Receiver> {
    return new Receiver(await Child.start('./receiver/receiver-process.js'));
  }

  get url(): string {
    return `http://127.0.0.1:${this.child.ready as number}/hook`;
  }

  get origin(): string {
    return new URL(this.url).origin;
  }

  get pid(): number {
    return this.child.pid;
  }

  /** Events since the start; a repetition is not counted. */
  count(): Promise<number> {
    return this.child.ask({ kind: 'count' });
  }

  /** What has come since the last look. */
  take(): Promise<Arrivals> {
    return this.child.ask({ kind: 'take' });
  }

  stop(): Promise<void> {
    return this.child.stop();
  }
}
