/** One point in time for all steps of an attempt. */
export class Deadline {
  readonly #timer: NodeJS.Timeout;
  readonly #listeners = new Set<() => void>();
  #expired = false;

  constructor(ms: number) {
    this.#timer = setTimeout(() => {
      this.#expired = true;
      for (const listener of this.#listeners) listener();
      this.#listeners.clear();
    }, ms);
  }

  get expired(): boolean {
    return this.#expired;
  }

  /** Calls back once, at the deadline. Returns the function that takes the wish back. */
  onExpiry(listener: () => void): () => void {
    if (this.#expired) listener();
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What the promise resolves to, or null at the deadline. */
  race<T>(promise: Promise<T>): Promise<T | null> {
    return new Promise((resolve, reject) => {
      const forget = this.onExpiry(() => resolve(null));
      promise.then(resolve, reject).finally(forget);
    });
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}
