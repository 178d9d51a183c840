import type { EntityManager } from 'typeorm';
import { eventTypeSubject } from '../domain/event-type.js';
import { idPrefixes } from '../domain/ids.js';
import type { Database } from './data-source.js';
import { Group } from './group.js';
import type { HotStatement } from './hot-statements.js';
import { type AskedEndpoint, endpointsToAsk } from './dry-run-store.js';
import { mustWait } from './pacing-sql.js';
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

/** A delivery that its dispatcher didn't start is looked at by the sweeper after this long. */
const dispatchGraceMs = 5_000;

/** Requests whose events share a statement; larger ones have their own. */
const requestsOfGroup = 100;
const eventsOfSmallRequest = 20;

interface Publication {
  readonly events: readonly NewEvent[];
  /** Who is to make the first attempts, without a workflow; null: a workflow each. */
  readonly leaseHolder: string | null;
}

type Run = <Row>(statement: HotStatement, values: unknown[]) => Promise<Row[]>;

/** Events and their deliveries: one transaction, and the row of a delivery is its own outbox. */
export class EventStore {
  private readonly small: Group<Publication, PublishResult[]>;

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
    const matches = await this.matchAll(this.hot, [{ tenantId, type, data }]);
    return matches.map(({ endpointId, url, status }) => ({ endpointId, url, status }));
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
    const first = new Map<string, NewEvent & { readonly leaseHolder: string | null }>();
    for (const { events, leaseHolder } of publications)
      for (const event of events) {
        const key = keyOf(event);
        if (!first.has(key)) first.set(key, { ...event, leaseHolder });
      }
    // In one order everywhere, so that two batches with the same ids can't lock each other out.
    const fresh = [...first.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
    const matches = await this.matchAll(run, fresh);
    const deliveries = matches.map(({ index, endpointId, url, status, reason }): DeliveryToInsert => {
      const event = fresh[index]!;
      const leaseHolder = status === 'pending' ? event.leaseHolder : null;
      return {
        id: newId(idPrefixes.delivery),
        tenantId: event.tenantId,
        eventId: event.id,
        endpointId,
        type: event.type,
        url,
        status,
        reason,
        leaseHolder,
        leased: leaseHolder !== null,
      };
    });
    const inserted = await this.insert(run, fresh, deliveries);
    const earlier = await this.findEarlier(
      run,
      fresh.filter((event) => !inserted.has(keyOf(event))),
    );
    const deliveriesOf = new Map<string, NewDelivery[]>();
    for (const delivery of deliveries) {
      const key = keyOf({ tenantId: delivery.tenantId, id: delivery.eventId });
      const others = deliveriesOf.get(key);
      if (others) others.push(delivery);
      else deliveriesOf.set(key, [delivery]);
    }
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

  private async matchAll(
    run: Run,
    events: readonly Pick<NewEvent, 'tenantId' | 'type' | 'data' | 'operational' | 'exceptEndpointId'>[],
  ): Promise<(Match & { index: number; reason: string })[]> {
    if (events.length === 0) return [];
    const found = await run<Match & { index: number; reason: string; filter: string | null }>(matchStatement, [
      events.map((e) => e.tenantId),
      events.map((e) => eventTypeSubject(e.type)),
      this.options.unverifiedEvents === 'hold',
      events.map((e) => e.operational ?? false),
      events.map((e) => e.exceptEndpointId ?? null),
    ]);
    if (found.every(({ filter }) => filter === null)) return found;
    const data = events.map((event) => new FilteredData(event.data));
    return found.filter(({ index, filter }) => data[index]?.decide(filter) === null);
  }

  private async insert(
    run: Run,
    events: readonly NewEvent[],
    deliveries: readonly DeliveryToInsert[],
  ): Promise<Map<string, StoredEvent>> {
    if (events.length === 0) return new Map();
    const column = <T>(pick: (event: NewEvent) => T): T[] => events.map(pick);
    const rows = await run<{ tenant_id: string; id: string; created_at: Date }>(insertStatement, [
      column((e) => e.tenantId),
      column((e) => e.id),
      column((e) => e.type),
      column((e) => e.source),
      column((e) => e.subject),
      column((e) => e.apiVersion),
      column((e) => e.data),
      column((e) => e.createdAt),
      column((e) => e.bodyHash),
      deliveries.map((d) => d.id),
      deliveries.map((d) => d.tenantId),
      deliveries.map((d) => d.eventId),
      deliveries.map((d) => d.endpointId),
      deliveries.map((d) => d.type),
      deliveries.map((d) => d.status),
      deliveries.map((d) => d.reason),
      column((e) => e.operational ?? false),
      column((e) => e.traceparent ?? null),
      deliveries.map((d) => d.leaseHolder),
    ]);
    const createdAt = new Map(rows.map((row) => [keyOf({ tenantId: row.tenant_id, id: row.id }), row.created_at]));
    return new Map(
      events.flatMap((event) => {
        const created = createdAt.get(keyOf(event));
        return created ? [[keyOf(event), { ...event, createdAt: created }] as const] : [];
      }),
    );
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
        }));
        return [keyOf(event), { event, bodyHash: row.body_hash, deliveries }];
      }),
    );
  }
}

interface DeliveryToInsert extends NewDelivery {
  readonly reason: string;
  readonly leaseHolder: string | null;
}

const matchStatement: HotStatement = {
  name: 'match_endpoints',
  text: `with m as (
         select v.ord, e.*, row_number() over (partition by e.id order by v.ord) as nth
           from unnest($1::text[], $2::text[], $4::boolean[], $5::text[]) with ordinality
             as v (tenant_id, subject, operational, except_id, ord)
           join endpoints e on e.tenant_id = any($1) and e.tenant_id = v.tenant_id and e.deleted_at is null
                           and e.id is distinct from v.except_id
                           and e.status in ('active', 'paused', 'pending_verification')
                           and v.subject like any (case when v.operational then array_remove(e.event_likes, '%') else e.event_likes end))
       select (e.ord - 1)::int as index, e.id as "endpointId", e.url, e.filter,
              case e.status when 'active' then case when ${mustWait('e.nth')} then 'held' else 'pending' end
                when 'paused' then 'held' else case when $3 then 'held' else 'cancelled' end end as status,
              case e.status when 'active' then case when ${mustWait('e.nth')} then 'rate_limited' else 'published' end
                when 'paused' then 'endpoint_paused'
                else case when $3 then 'endpoint_unverified' else 'verification_dropped' end end as reason
         from m e order by e.ord, e.id`,
};

const insertStatement: HotStatement = {
  name: 'insert_events',
  text: `with v as (
         insert into events (tenant_id, id, type, source, subject, api_version, data, created_at, body_hash, operational,
                             traceparent)
         select n.tenant_id, n.id, n.type, n.source, n.subject, n.api_version, n.data, coalesce(n.created_at, now()), n.body_hash,
                n.operational, n.traceparent
           from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::bytea[],
                       $17::boolean[], $18::text[])
             as n (tenant_id, id, type, source, subject, api_version, data, created_at, body_hash, operational, traceparent)
         on conflict (tenant_id, id) do nothing
         returning tenant_id, id, created_at, operational
       ), d as (
         insert into deliveries (id, tenant_id, event_id, endpoint_id, type, status, published_status, reason, operational, held_since,
                                 next_attempt_at, sweep_after, lease_holder)
         select n.id, v.tenant_id, v.id, n.endpoint_id, n.type, n.status, n.status, n.reason, v.operational,
                case when n.reason = 'rate_limited' then now() end,
                case when n.status = 'pending' then now() end,
                case when n.status = 'pending' then now() + interval '${dispatchGraceMs} ms' end,
                n.lease_holder
           from unnest($10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $19::text[])
             as n (id, tenant_id, event_id, endpoint_id, type, status, reason, lease_holder)
           join v on v.tenant_id = n.tenant_id and v.id = n.event_id
       )
       select tenant_id, id, created_at from v`,
};

const earlierStatement: HotStatement = {
  name: 'find_events',
  text: `select v.tenant_id, v.id, v.type, v.source, v.subject, v.api_version, v.created_at, v.body_hash,
              coalesce((select json_agg(json_build_object('id', d.id, 'endpointId', d.endpoint_id, 'url', e.url, 'status', d.published_status) order by d.id)
                 from deliveries d join endpoints e on e.id = d.endpoint_id
                where d.tenant_id = v.tenant_id and d.event_id = v.id and d.created_at = v.accepted_at), '[]') as deliveries
         from unnest($1::text[], $2::text[]) as n (tenant_id, id)
        cross join lateral (select * from events x where x.tenant_id = n.tenant_id and x.id = n.id offset 0) v`,
};

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
