import { BoundedMap } from '../payload/bounded-map.js';
import type { Loaded } from './attempt-load.js';
import type { LoadedDelivery } from './attempt-rows.js';

/** What publishing knows of a delivery that it has just made. */
export interface FreshDelivery {
  readonly tenantId: string;
  readonly endpointId: string;
  readonly eventId: string;
  readonly type: string;
  /** To this process. */
  readonly leased: boolean;
  readonly event: Omit<LoadedDelivery['event'], 'typeRules'>;
  /** Of the rows of its endpoint and its type, as the statement found them that made the delivery. */
  readonly settings: string;
  /** When that statement was sent, by `performance.now()`. */
  readonly asOf: number;
}

/**
 * An attempt goes by what was true so long ago at most: as an attempt does that is read and then sent, and no more. Who pauses
 * an endpoint and is answered sees nothing begin later than this.
 */
export const freshForMs = 50;
/** Until then a look is enough; what waited longer may have been through more than a look shows. */
export const lookForMs = 10_000;
const keptForMs = 60_000;
const mostKept = 1_000;

export interface KnownEndpoint {
  /** Changes with every change of what is kept here. */
  readonly settings: string;
  readonly until: number;
  readonly endpoint: LoadedDelivery['endpoint'];
  readonly typeRules: string | null;
}

/**
 * What attempts have to know of their endpoint and their type, kept from the last one that read it. The attempt of a fresh
 * delivery goes by that where the very same rows count for it.
 */
export class KnownEndpoints {
  private readonly known = new BoundedMap<string, KnownEndpoint>(mostKept);

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Only endpoints that nothing has to be asked about: whatever else is up with one, its attempts read. */
  remember({ delivery, settings, secretsForMs }: Loaded): void {
    const { endpoint, mustAsk, restsForMs, event } = delivery;
    if (endpoint.status !== 'active' || endpoint.deleted || !endpoint.quick || mustAsk || restsForMs > 0) return;
    const until = this.now() + Math.min(keptForMs, secretsForMs ?? keptForMs);
    this.known.set(keyOf(delivery), { settings, until, endpoint, typeRules: event.typeRules });
  }

  find(fresh: FreshDelivery): KnownEndpoint | null {
    const known = this.known.get(keyOf(fresh));
    const now = this.now();
    return known && now < known.until && now - fresh.asOf < lookForMs ? known : null;
  }

  /** What was true when it was made counts. */
  isYoung({ asOf }: FreshDelivery): boolean {
    return this.now() - asOf < freshForMs;
  }
}

/** More are on their way at once only where their attempts come too late to go by this. */
const mostExpected = 200;
const mostExpectedData = 16 * 1024;

/** Fresh deliveries whose workflow is about to make their first attempt in this very process: each is taken once. */
export class ExpectedDeliveries {
  private readonly expected = new Map<string, FreshDelivery>();

  add(id: string, fresh: FreshDelivery): void {
    if ((fresh.event.data?.length ?? 0) > mostExpectedData) return;
    this.expected.set(id, fresh);
    if (this.expected.size <= mostExpected) return;
    const [oldest] = this.expected.keys();
    if (oldest !== undefined) this.expected.delete(oldest);
  }

  take(id: string): FreshDelivery | null {
    const fresh = this.expected.get(id);
    if (!fresh) return null;
    this.expected.delete(id);
    return fresh;
  }
}

/** The delivery as it was made. */
export function firstLoad(id: string, fresh: FreshDelivery, { endpoint, typeRules }: KnownEndpoint): LoadedDelivery {
  const { tenantId, endpointId, eventId, type, leased, event } = fresh;
  return {
    id,
    tenantId,
    endpointId,
    eventId,
    type,
    status: 'pending',
    reason: 'published',
    round: 1,
    attemptCount: 0,
    roundAttempts: 0,
    lastStatusCode: null,
    lastError: null,
    wakeRequested: false,
    lease: leased ? 'ours' : 'none',
    mustAsk: false,
    slot: null,
    dueInMs: 0,
    restsForMs: 0,
    event: { ...event, typeRules },
    endpoint,
    runHasAttempts: false,
    recorded: null,
  };
}

/** A type has no slash. */
const keyOf = ({ endpointId, type }: { endpointId: string; type: string }): string => `${endpointId}/${type}`;
