import type { Connection } from './connection.js';

/**
 * Idle connections by pool key. A pool exists only while it has idle connections, so their number bounds the number of pools
 * too; the oldest makes way. No pool holds more than a quarter of them: a burst to one endpoint leaves the others theirs.
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
    const pool = this.#idle.get(connection.key) ?? [];
    const [first] = pool;
    if (first && pool.length >= this.maxIdle / 4) this.#close(first);
    this.#idle.set(connection.key, [...(this.#idle.get(connection.key) ?? []), connection]);
    this.#order.add(connection);
    const [oldest] = this.#order;
    if (oldest && this.#order.size > this.maxIdle) this.#close(oldest);
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
    for (const connection of this.#order) this.#close(connection);
  }

  #close(connection: Connection): void {
    this.forget(connection);
    connection.discard();
  }
}
