import { isLocalName, judgeAddress, literalAddress, type AddressPolicy } from './address-policy.js';
import { httpNotLocal, mayUseHttp } from './connection.js';
import type { Deadline } from './deadline.js';
import {
  blocked,
  classifyError,
  deadlineError,
  errorCodeOf,
  isLocalExhaustion,
  type AttemptError,
} from './error-codes.js';
import type { CachingResolver, ResolvedAddress } from './resolver.js';

export type Pinned =
  /** Null: the proxy looks the name up. */
  | { readonly ok: true; readonly address: string | null }
  | { readonly ok: false; readonly error: AttemptError }
  /** This machine can't look up any more names: says nothing about the endpoint. */
  | { readonly ok: false; readonly exhausted: string };

const avoidMs = 5 * 60_000;
const maxAvoided = 1_000;

/** Chooses the one address that a request is going to dial. */
export class AddressPinner {
  /** Addresses that didn't answer lately, by origin, so that a dead one of several costs one attempt and not all. */
  readonly #avoided = new Map<string, number>();

  constructor(
    private readonly policy: AddressPolicy,
    private readonly resolver: CachingResolver,
    private readonly now: () => number,
    private readonly proxyResolves = false,
  ) {}

  async pin(url: URL, deadline: Deadline, timeoutMs: number): Promise<Pinned> {
    // A name of this machine would be one of the proxy's.
    const literal = literalAddress(url) ?? (this.proxyResolves && isLocalName(url.hostname) ? '127.0.0.1' : null);
    if (literal === null && this.proxyResolves) return { ok: true, address: null };
    let resolved: readonly ResolvedAddress[];
    if (literal === null) {
      try {
        const answer = await deadline.race(this.resolver.lookup(url.hostname));
        if (answer === null) return { ok: false, error: deadlineError('resolve', timeoutMs) };
        resolved = answer;
      } catch (error) {
        if (isLocalExhaustion(error)) return { ok: false, exhausted: errorCodeOf(error) };
        return { ok: false, error: classifyError(error, 'resolve', false) };
      }
    } else {
      resolved = [{ address: literal, family: 0 }];
    }
    const allowed: string[] = [];
    for (const { address } of resolved) {
      const judgement = judgeAddress(address, this.policy);
      // One bad answer refuses the name: a public address beside an inner one is how rebinding begins, never an honest set-up.
      if (!judgement.ok) return { ok: false, error: blocked(judgement.kind) };
      if (url.protocol === 'http:' && !mayUseHttp(this.policy, judgement.loopback))
        return { ok: false, error: blocked(httpNotLocal) };
      allowed.push(judgement.address);
    }
    return { ok: true, address: this.#choose(url, allowed) };
  }

  /** Remembers that no connection came about. */
  avoid(url: URL, address: string): void {
    this.#avoided.set(`${url.origin} ${address}`, this.now() + avoidMs);
    for (const oldest of this.#avoided.keys()) {
      if (this.#avoided.size <= maxAvoided) break;
      this.#avoided.delete(oldest);
    }
  }

  /** IPv4 first: hosts without an IPv6 route are the more common ones. */
  #choose(url: URL, addresses: readonly string[]): string {
    const sorted = [...addresses].sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')));
    const fresh = sorted.find((address) => (this.#avoided.get(`${url.origin} ${address}`) ?? 0) <= this.now());
    return fresh ?? sorted[0] ?? '';
  }
}
