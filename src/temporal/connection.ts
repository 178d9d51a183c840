import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { Logger } from '../telemetry/logger.js';
import { pause } from '../pause.js';

/** `native`: a process that also runs workers, and may start workflows eagerly. `plain`: an API process. */
export type ConnectionKind = 'native' | 'plain';

export interface TemporalAddress {
  readonly address: string;
  readonly namespace: string;
}

const firstPauseMs = 250;
const longestPauseMs = 5_000;

/**
 * The process's connection to Temporal. It boots without one and keeps trying for ever: connecting throws at once where Temporal is
 * away, and an accepted event must not depend on it.
 */
export class TemporalConnection {
  #client: Client | null = null;
  #native: NativeConnection | null = null;
  #plain: Connection | null = null;
  #closed = false;
  #ready: Promise<void>;
  #isReady!: () => void;

  constructor(
    readonly kind: ConnectionKind,
    private readonly target: TemporalAddress,
    private readonly log: Logger,
  ) {
    this.#ready = new Promise((resolve) => (this.#isReady = resolve));
  }

  get namespace(): string {
    return this.target.namespace;
  }

  /** Null until the first connection. */
  get client(): Client | null {
    return this.#client;
  }

  get native(): NativeConnection | null {
    return this.#native;
  }

  /** Eager start needs a worker in this very process. */
  get startsEagerly(): boolean {
    return this.#native !== null;
  }

  /** Resolves at the first connection; later losses are the SDK's to repair. */
  async ready(): Promise<void> {
    await this.#ready;
  }

  /** Tries until it works or the process stops. */
  async connect(): Promise<void> {
    for (let waitMs = firstPauseMs; !this.#closed; waitMs = Math.min(waitMs * 2, longestPauseMs)) {
      try {
        await this.#tryOnce();
        this.log.info({ address: this.target.address }, 'connected to Temporal');
        this.#isReady();
        return;
      } catch (error) {
        this.log.warn({ address: this.target.address, err: error }, 'Temporal is away; trying again');
        await pause(waitMs);
      }
    }
  }

  async #tryOnce(): Promise<void> {
    const { address, namespace } = this.target;
    if (this.kind === 'native') {
      this.#native = await NativeConnection.connect({ address });
      this.#client = new Client({ connection: this.#native, namespace });
    } else {
      this.#plain = await Connection.connect({ address, connectTimeout: '5s' });
      this.#client = new Client({ connection: this.#plain, namespace });
    }
  }

  /** True when the frontend answers within the time. */
  async isHealthy(timeoutMs = 1_000): Promise<boolean> {
    const client = this.#client;
    if (!client) return false;
    try {
      await client.withDeadline(Date.now() + timeoutMs, () => client.workflowService.getSystemInfo({}));
      return true;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#native?.close();
    await this.#plain?.close();
  }
}
