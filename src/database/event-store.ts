import type { EntityManager } from 'typeorm';
import { eventTypeSubject } from '../domain/event-type.js';
import { idPrefixes } from '../domain/ids.js';
import type { Database } from './data-source.js';
import { Group } from './group.js';
import type { HotStatement } from './hot-statements.js';
import { earlierStatement, matchStatement, publishStatement } from './publish-sql.js';
import { type AskedEndpoint, endpointsToAsk } from './dry-run-store.js';
import { type FreshDelivery, type Moment, thisMoment } from './known-endpoints.js';
import { FilteredData } from '../payload/content-filters.js';
import { newId } from '../security/new-id.js';

/** An event ready to be stored. */
export interface NewEvent {
  readonly id: string;
  readonly tenantId: string;
  readonly type: string;
  readonly source: string | null;
  readonly subject: string | null;
  readonly apiVersion: string | null;
  readonly data: string;
  /** RFC 3339; null: the time of acceptance. */
  readonly createdAt: string | null;
  readonly bodyHash: Buffer;
  /** The trace that its attempts belong to; null or absent where nobody traces. */
  readonly traceparent?: string | null;
  /** About Posthorn itself: it reaches only endpoints whose filters name it, never by `*` alone. */
  readonly operational?: boolean;
  /** The endpoint that it is about, which doesn't get it. */
  readonly exceptEndpointId?: string;
}

export interface StoredEvent {
  readonly id: string;
  readonly tenantId: string;
  readonly type: string;
  readonly source: string | null;
  readonly subject: string | null;
  readonly apiVersion: string | null;
  readonly createdAt: Date;
}

/** A delivery as the fan-out made it: enough to start its workflow. */
export interface NewDelivery {
  readonly id: string;
  readonly tenantId: string;
  readonly eventId: string;
  readonly endpointId: string;
  readonly type: string;
  readonly url: string;
  /** As it was published; only a `pending` one is to be started. */
  readonly status: PublishedStatus;
  /** Its first attempt is the publishing process's own: nobody else starts it so long as that process lives. */
  readonly leased: boolean;
  /** What its first attempt can go by, at once; null where it isn't pending. */
  readonly fresh: FreshDelivery | null;
}

/** `held`: its endpoint is paused, not verified yet, or takes no more just now. `cancelled`: dropped, since the configuration says so of unverified endpoints. */
export type PublishedStatus = 'pending' | 'held' | 'cancelled';

export type PublishResult =
  | { readonly kind: 'accepted'; readonly event: StoredEvent; readonly deliveries: readonly NewDelivery[] }
  /** The same bytes under the same id were accepted before. */
  | { readonly kind: 'repeated'; readonly event: StoredEvent; readonly deliveries: readonly NewDelivery[] }
  | { readonly kind: 'id_conflict'; readonly id: string };

export interface Match {
  readonly endpointId: string;
  readonly url: string;
  readonly status: PublishedStatus;
}

/** What an idempotent request answered, byte for byte. */
export interface StoredAnswer {
  readonly statusCode: number;
  readonly answer: string;
}

export interface IdempotencyKey {
  readonly tenantId: string;
  readonly key: string;
  readonly bodyHash: Buffer;
}

export type IdempotentResult<T> =
  | { readonly kind: 'first'; readonly value: T }
  | { readonly kind: 'replayed'; readonly stored: StoredAnswer }
  | { readonly kind: 'conflict' };

/** Requests whose events share a statement; larger ones have their own. */
const requestsOfGroup = 100;
const eventsOfSmallRequest = 20;

/** Ids for deliveries, beyond what as many events had lately. */
const spareIds = 4;
const fanOutDecay = 0.99;

type FreshEvent = NewEvent & {
  /** Who is to make the first attempts, without a workflow; null: a workflow each. */
  readonly leaseHolder: string | null;
};

interface Publication {
  readonly events: readonly NewEvent[];
  readonly leaseHolder: string | null;
}

type Run = <Row>(statement: HotStatement, values: unknown[]) => Promise<Row[]>;

/** Events and their deliveries: one transaction, and the row of a delivery is its own outbox. */
export class EventStore {
  private readonly small: Group<Publication, PublishResult[]>;
  /** Deliveries of an event, at most, lately. */
  private fanOut = 1;

  constructor(
    private readonly db: Database,
    private readonly options: { readonly unverifiedEvents: 'hold' | 'drop' },
  ) {
    this.small = new Group((publications) => this.publishBy(this.hot, publications), {
      most: requestsOfGroup,
      atOnce: 1,
    });
  }

  /** Which endpoints of the tenant would get an event of this type, now or when they take deliveries again. */
  async matches(tenantId: string, type: string, data: string): Promise<Match[]> {
    const hold = this.options.unverifiedEvents === 'hold';
    const values = [[tenantId], [eventTypeSubject(type)], [false], [null], hold];
    const matches = await this.hot<Match & { readonly filter: string | null }>(matchStatement, values);
    const filtered = new FilteredData(data);
    return matches
      .filter(({ filter }) => filtered.decide(filter) === null)
      .map(({ endpointId, url, status }) => ({ endpointId, url, status }));
  }

  /** The tenant's endpoints, to be told why each of them would get an event or not. */
  endpointsToAsk(tenantId: string): Promise<AskedEndpoint[]> {
    return endpointsToAsk(this.db, tenantId);
  }

  /** Stores the events and their deliveries by one statement. Returns one result per event, in order. */
  async publish(
    events: readonly NewEvent[],
    { tx, leaseHolder = null }: { readonly tx?: EntityManager; readonly leaseHolder?: string | null } = {},
  ): Promise<PublishResult[]> {
    const publication = { events, leaseHolder };
    if (tx) return (await this.publishBy(({ text }, values) => tx.query(text, values), [publication]))[0]!;
    if (events.length > eventsOfSmallRequest) return (await this.publishBy(this.hot, [publication]))[0]!;
    return this.small.add(publication);
  }

  private readonly hot: Run = (statement, values) => this.db.hot.run(statement, values);

  private async publishBy(run: Run, publications: readonly Publication[]): Promise<PublishResult[][]> {
    const first = new Map<string, FreshEvent>();
    for (const { events, leaseHolder } of publications)
      for (const event of events) {
        const key = keyOf(event);
        if (!first.has(key)) first.set(key, { ...event, leaseHolder });
      }
    // In one order everywhere, so that two batches with the same ids can't lock each other out.
    const fresh = [...first.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
    const { inserted, deliveriesOf } = await this.insert(run, fresh);
    const earlier = await this.findEarlier(
      run,
      fresh.filter((event) => !inserted.has(keyOf(event))),
    );
    const answered = new Set<string>();
    const resultOf = (event: NewEvent): PublishResult => {
      const key = keyOf(event);
      const stored = inserted.get(key);
      const known = stored
        ? { event: stored, bodyHash: first.get(key)!.bodyHash, deliveries: deliveriesOf.get(key) ?? [] }
        : earlier.get(key);
      if (!known) throw new Error(`event ${event.id} was neither stored nor found`);
      if (!known.bodyHash.equals(event.bodyHash)) return { kind: 'id_conflict', id: event.id };
      const repeated = !stored || answered.has(key);
      answered.add(key);
      return { kind: repeated ? 'repeated' : 'accepted', event: known.event, deliveries: known.deliveries };
    };
    return publications.map(({ events }) => events.map(resultOf));
  }

  /**
   * Runs `work` once per idempotency key. A second request with the same key waits until the first one's transaction ends,
   * and then gets its answer, or does the work if that one failed. Kept for 24 hours.
   */
  async once<T>(
    key: IdempotencyKey,
    work: (tx: EntityManager) => Promise<{ value: T; stored: StoredAnswer }>,
  ): Promise<IdempotentResult<T>> {
    return this.db.transaction(async (tx): Promise<IdempotentResult<T>> => {
      const [mine] = await tx.query<unknown[]>(
        `with k as (
           insert into idempotency_keys as k (tenant_id, key, body_hash) values ($1, $2, $3)
           on conflict (tenant_id, key) do update
             set body_hash = excluded.body_hash, status_code = null, answer = null, created_at = now()
           where k.created_at < now() - interval '24 hours'
           returning 1)
         select 1 from k`,
        [key.tenantId, key.key, key.bodyHash],
      );
      if (!mine) {
        const [row] = await tx.query<{ body_hash: Buffer; status_code: number; answer: string }[]>(
          'select body_hash, status_code, answer from idempotency_keys where tenant_id = $1 and key = $2',
          [key.tenantId, key.key],
        );
        if (!row || !row.body_hash.equals(key.bodyHash)) return { kind: 'conflict' };
        return { kind: 'replayed', stored: { statusCode: row.status_code, answer: row.answer } };
      }
      const { value, stored } = await work(tx);
      await tx.query('update idempotency_keys set status_code = $3, answer = $4 where tenant_id = $1 and key = $2', [
        key.tenantId,
        key.key,
        stored.statusCode,
        stored.answer,
      ]);
      return { kind: 'first', value };
    });
  }

  /** Idempotency keys past their 24 hours go, some at a time. */
  async forgetOldKeys(): Promise<void> {
    await this.db.query(
      `delete from idempotency_keys where (tenant_id, key) in
         (select tenant_id, key from idempotency_keys where created_at < now() - interval '25 hours' limit 1000)`,
    );
  }

  /** One round trip, and a second one where content filters decide or events have more endpoints than others had lately. */
  private async insert(run: Run, events: readonly FreshEvent[]): Promise<Inserted> {
    if (events.length === 0) return { inserted: new Map(), deliveriesOf: new Map() };
    const idCount = Math.ceil(events.length * this.fanOut) + spareIds;
    // An unusual event is forgotten again, or every other one would carry ids for its endpoints.
    this.fanOut = Math.max(1, this.fanOut * fanOutDecay);
    let asOf = thisMoment();
    let rows = await this.runPublish(run, events, idCount, null);
    if (rows.some(({ decided }) => !decided)) {
      const data = events.map((event) => new FilteredData(event.data));
      const chosen = rows.filter(({ index, endpointId, filter }) => endpointId && data[index]?.decide(filter) === null);
      this.fanOut = Math.max(this.fanOut, chosen.length / events.length);
      const names = chosen.map(({ index, endpointId }) => `${index + 1}/${endpointId}`);
      asOf = thisMoment();
      rows = await this.runPublish(run, events, chosen.length, names);
    }
    return toInserted(events, rows, asOf);
  }

  private runPublish(
    run: Run,
    events: readonly FreshEvent[],
    idCount: number,
    chosen: readonly string[] | null,
  ): Promise<PublishedRow[]> {
    const column = <T>(pick: (event: FreshEvent) => T): T[] => events.map(pick);
    return run<PublishedRow>(publishStatement, [
      column((e) => e.tenantId),
      column((e) => e.id),
      column((e) => e.type),
      column((e) => e.source),
      column((e) => e.subject),
      column((e) => e.apiVersion),
      column((e) => e.data),
      column((e) => e.createdAt),
      column((e) => e.bodyHash),
      column((e) => e.operational ?? false),
      column((e) => e.traceparent ?? null),
      column((e) => e.leaseHolder),
      column((e) => eventTypeSubject(e.type)),
      column((e) => e.exceptEndpointId ?? null),
      Array.from({ length: idCount }, () => newId(idPrefixes.delivery)),
      chosen,
      this.options.unverifiedEvents === 'hold',
    ]);
  }

  private async findEarlier(run: Run, events: readonly NewEvent[]) {
    type Earlier = { event: StoredEvent; bodyHash: Buffer; deliveries: NewDelivery[] };
    if (events.length === 0) return new Map<string, Earlier>();
    const rows = await run<EarlierRow>(earlierStatement, [events.map((e) => e.tenantId), events.map((e) => e.id)]);
    return new Map<string, Earlier>(
      rows.map((row) => {
        const event: StoredEvent = {
          id: row.id,
          tenantId: row.tenant_id,
          type: row.type,
          source: row.source,
          subject: row.subject,
          apiVersion: row.api_version,
          createdAt: row.created_at,
        };
        const deliveries = row.deliveries.map((d) => ({
          ...d,
          tenantId: row.tenant_id,
          eventId: row.id,
          type: row.type,
          leased: false,
          fresh: null,
        }));
        return [keyOf(event), { event, bodyHash: row.body_hash, deliveries }];
      }),
    );
  }
}

interface Inserted {
  /** By the key of the event. */
  readonly inserted: ReadonlyMap<string, StoredEvent>;
  readonly deliveriesOf: ReadonlyMap<string, NewDelivery[]>;
}

function toInserted(events: readonly FreshEvent[], rows: readonly PublishedRow[], asOf: Moment): Inserted {
  const inserted = new Map<string, StoredEvent>();
  const deliveriesOf = new Map<string, NewDelivery[]>();
  for (const { index, createdAt, endpointId, url, status, deliveryId, settings } of rows) {
    const event = events[index]!;
    if (!createdAt) continue;
    const key = keyOf(event);
    if (!inserted.has(key)) inserted.set(key, { ...event, createdAt });
    if (!endpointId) continue;
    const { tenantId, id: eventId, type } = event;
    const leased = status === 'pending' && event.leaseHolder !== null;
    const fresh =
      settings === null
        ? null
        : { tenantId, endpointId, eventId, type, leased, event: { ...event, createdAt }, settings, asOf };
    const delivery = { id: deliveryId, tenantId, eventId, endpointId, type, url, status, leased, fresh };
    const others = deliveriesOf.get(key);
    if (others) others.push(delivery);
    else deliveriesOf.set(key, [delivery]);
  }
  return { inserted, deliveriesOf };
}

/** An event and a delivery of it, or an event alone: then the delivery's columns are null. */
interface PublishedRow {
  readonly index: number;
  /** Null where the event was there before, or nothing was written. */
  readonly createdAt: Date | null;
  readonly decided: boolean;
  readonly endpointId: string | null;
  readonly url: string;
  readonly filter: string | null;
  readonly status: PublishedStatus;
  readonly deliveryId: string;
  /** Null where it isn't pending. */
  readonly settings: string | null;
}

interface EarlierRow {
  tenant_id: string;
  id: string;
  type: string;
  source: string | null;
  subject: string | null;
  api_version: string | null;
  created_at: Date;
  body_hash: Buffer;
  deliveries: { id: string; endpointId: string; url: string; status: PublishedStatus }[];
}

const keyOf = (event: { tenantId: string; id: string }): string => `${event.tenantId}/${event.id}`;
