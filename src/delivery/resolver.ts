import { lookup } from 'node:dns/promises';

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

export type Resolve = (hostname: string) => Promise<readonly ResolvedAddress[]>;

/** The operating system's resolver, so that /etc/hosts and search domains count. */
export const resolveBySystem: Resolve = (hostname) => lookup(hostname, { all: true, verbatim: true });

const ttlMs = 5_000;
const maxEntries = 1_000;
/** More than there are connections, since a lookup may outlive its request. */
const maxPending = 2_048;

/** Remembers answers for 5 s and lets callers who ask for the same name at the same time share one lookup. */
export class CachingResolver {
  readonly #answers = new Map<string, { readonly askedAt: number; readonly addresses: readonly ResolvedAddress[] }>();
  readonly #pending = new Map<string, Promise<readonly ResolvedAddress[]>>();

  constructor(
    private readonly resolve: Resolve,
    private readonly now: () => number,
  ) {}

  /** @throws whatever the resolver throws; failures are not remembered. */
  async lookup(hostname: string): Promise<readonly ResolvedAddress[]> {
    const known = this.#answers.get(hostname);
    const age = known ? this.now() - known.askedAt : -1;
    // A clock that was set back must not prolong an answer's life.
    if (known && age >= 0 && age < ttlMs) return known.addresses;
    const pending = this.#pending.get(hostname);
    if (pending) return pending;
    if (this.#pending.size >= maxPending) throw Object.assign(new Error('too many lookups'), { code: 'ENOBUFS' });
    const answer = this.#ask(hostname).finally(() => this.#pending.delete(hostname));
    this.#pending.set(hostname, answer);
    return answer;
  }

  async #ask(hostname: string): Promise<readonly ResolvedAddress[]> {
    const askedAt = this.now();
    const addresses = await this.resolve(hostname);
    if (addresses.length === 0) throw Object.assign(new Error('no address'), { code: 'ENODATA' });
    this.#answers.delete(hostname);
    this.#answers.set(hostname, { askedAt, addresses });
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= maxEntries) break;
      this.#answers.delete(oldest);
    }
    return addresses;
  }
}
