import { BoundedMap } from '../payload/bounded-map.js';
import type { Loaded } from './attempt-load.js';
import type { LoadedDelivery } from './attempt-rows.js';

/** By both clocks: the one stands still while a machine is suspended, the other may be set. */
export interface Moment {
  readonly ticksMs: number;
  readonly wallMs: number;
}

export const thisMoment = (): Moment => ({ ticksMs: performance.now(), wallMs: Date.now() });

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
  /** When that statement was sent. */
  readonly asOf: Moment;
}

/**
 * An attempt goes by what was true so long ago at most: as an attempt does that is read and then sent, and no more. Who pauses
 * an endpoint and is answered sees nothing begin later than this.
 */
export const freshForMs = 50;
/** Until then a look is enough; what waited longer may have been through more than a look shows. */
export const lookForMs = 10_000;
/** Nothing is kept longer, used or not. */
export const keptForMs = 60_000;
const mostKept = 1_000;
const mostRulesKept = 16 * 1024;

export interface KnownEndpoint {
  /** Changes with every change of what is kept here. */
  readonly settings: string;
  /** How long it lasts by itself: a secret may end. */
  readonly lastsMs: number;
  readonly readAt: Moment;
  readonly endpoint: LoadedDelivery['endpoint'];
  readonly typeRules: string | null;
}

/**
 * What attempts have to know of their endpoint and their type, kept from the last one that read it. The attempt of a fresh
 * delivery goes by that where the very same rows count for it.
 */
export class KnownEndpoints {
  private known = new BoundedMap<string, KnownEndpoint>(mostKept);
  private emptying: NodeJS.Timeout | undefined;

  constructor(private readonly now: () => Moment = thisMoment) {}

  /** Only endpoints that nothing has to be asked about: whatever else is up with one, its attempts read. */
  remember({ delivery, settings, endpointAsks, secretsForMs }: Loaded, readAt: Moment): void {
    const { endpoint, restsForMs, event } = delivery;
    if (endpoint.status !== 'active' || endpoint.deleted || !endpoint.quick || endpointAsks || restsForMs > 0) return;
    if ((event.typeRules?.length ?? 0) > mostRulesKept) return;
    const lastsMs = Math.min(keptForMs, secretsForMs ?? keptForMs);
    this.known.set(keyOf(delivery), { settings, lastsMs, readAt, endpoint, typeRules: event.typeRules });
    this.emptying ??= setTimeout(() => this.empty(), keptForMs).unref();
  }

  find(fresh: FreshDelivery): KnownEndpoint | null {
    const known = this.known.get(keyOf(fresh));
    return known && this.age(known.readAt) < known.lastsMs && this.age(fresh.asOf) < lookForMs ? known : null;
  }

  /** What was true when it was made counts. */
  isYoung({ asOf }: FreshDelivery): boolean {
    return this.age(asOf) < freshForMs;
  }

  private age({ ticksMs, wallMs }: Moment): number {
    const now = this.now();
    return Math.max(now.ticksMs - ticksMs, Math.abs(now.wallMs - wallMs));
  }

  /** Opened secrets hang on what is kept. */
  private empty(): void {
    this.known = new BoundedMap(mostKept);
    this.emptying = undefined;
  }
}

/** More are on their way at once only where their attempts come too late to go by this. */
const mostExpected = 200;
const mostExpectedData = 16 * 1024;

/** Fresh deliveries whose workflow is about to make their first attempt in this very process: each is taken once. */
export class ExpectedDeliveries {
  private readonly expected = new Map<string, FreshDelivery>();
  private emptying: NodeJS.Timeout | undefined;

  add(id: string, fresh: FreshDelivery): void {
    if ((fresh.event.data?.length ?? 0) > mostExpectedData) return;
    this.expected.set(id, withOwnData(fresh));
    this.emptying ??= setTimeout(() => this.empty(), lookForMs).unref();
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

  /** Those just added too: they are read then. */
  private empty(): void {
    this.expected.clear();
    this.emptying = undefined;
  }
}

/** For keeping it: a part of a request's text would hold all of that in memory. */
export function withOwnData(fresh: FreshDelivery): FreshDelivery {
  const { data } = fresh.event;
  return data === null
    ? fresh
    : { ...fresh, event: { ...fresh.event, data: Buffer.from(data, 'utf8').toString('utf8') } };
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
