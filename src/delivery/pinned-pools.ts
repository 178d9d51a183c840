import type { Connection } from './connection.js';

/**
 * Idle connections by pool key. A pool exists only while it has idle connections, so their number bounds the number of pools
 * too; the oldest makes way.
 */
export class PinnedPools {
  readonly #idle = new Map<string, Connection[]>();
  /** All idle connections, oldest first. */
  readonly #order = new Set<Connection>();

  constructor(private readonly maxIdle: number) {}

  get idleCount(): number {
    return this.#order.size;
  }

  /** The connection that was used last, since it is the least likely to be closing. */
  take(key: string): Connection | null {
    for (;;) {
      const connection = this.#idle.get(key)?.at(-1);
      if (connection === undefined) return null;
      this.forget(connection);
      if (connection.isUsable) return connection;
      connection.discard();
    }
  }

  give(connection: Connection): void {
    if (!connection.isUsable) return connection.discard();
    const pool = this.#idle.get(connection.key);
    if (pool) pool.push(connection);
    else this.#idle.set(connection.key, [connection]);
    this.#order.add(connection);
    for (const oldest of this.#order) {
      if (this.#order.size <= this.maxIdle) break;
      this.forget(oldest);
      oldest.discard();
    }
  }

  /** Returns whether it was idle. */
  forget(connection: Connection): boolean {
    if (!this.#order.delete(connection)) return false;
    const rest = this.#idle.get(connection.key)?.filter((other) => other !== connection) ?? [];
    if (rest.length > 0) this.#idle.set(connection.key, rest);
    else this.#idle.delete(connection.key);
    return true;
  }

  discardAll(): void {
    for (const connection of this.#order) {
      this.forget(connection);
      connection.discard();
    }
  }
}
