import { setTimeout as sleep } from 'node:timers/promises';
import type { IncidentApi } from './incident-api.js';

/** Publishes at a steady rate, whatever happens to the endpoint, until it is stopped. */
export class Traffic {
  #published = 0;
  #isStopped = false;
  #failure: unknown = null;
  readonly #done: Promise<void>;

  constructor(
    private readonly api: IncidentApi,
    private readonly type: string,
    private readonly eventsPerSecond: number,
  ) {
    this.#done = this.#run();
  }

  /** Events that were accepted. */
  get published(): number {
    return this.#published;
  }

  /** Waits until the last event is accepted, and tells what went wrong. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
    if (this.#failure !== null) throw this.#failure;
  }

  async #run(): Promise<void> {
    const startedAt = performance.now();
    try {
      for (let n = 1; !this.#isStopped; n++) {
        await this.api.publish(this.type, { order_id: `ord_${n}` });
        this.#published += 1;
        await sleep(Math.max(0, startedAt + (n * 1_000) / this.eventsPerSecond - performance.now()));
      }
    } catch (error) {
      this.#failure = error;
    }
  }
}
