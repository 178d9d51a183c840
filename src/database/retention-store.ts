import type { DataSource } from 'typeorm';
import type { PurgeStep } from '../../activities/contracts/retention-activities.js';
import { idPrefixes } from '../domain/ids.js';
import type { IdPrefix } from '../security/new-id.js';
import { idsAround } from './created-range.js';

/** How long things are kept, in milliseconds. */
export interface Retention {
  /** Data of events. */
  readonly payloadsMs: number;
  readonly attemptsMs: number;
  /** Deliveries since they last changed, with their resolved letters; replays since they ended. */
  readonly deliveriesMs: number;
  readonly eventsMs: number;
  /** What owners were told. */
  readonly noticesMs: number;
}

export interface PurgeBatch {
  readonly removed: number;
  /** Where the next batch begins; null when there is nothing more. */
  readonly after: string | null;
}

/** So many rows are looked at by a statement: a lock is never held for long. */
export const purgeBatch = 2_000;

const open = `('pending', 'retrying', 'held')`;
const hasOpenLetter = (deliveryId: string): string =>
  `exists (select from dead_letters l where l.delivery_id = ${deliveryId} and l.resolved_at is null)`;
const isReplayed = (deliveryId: string): string =>
  `exists (select from replays r join replay_items i on i.replay_id = r.id
            where r.finished_at is null and i.delivery_id = ${deliveryId} and i.state = 'waiting')`;
const isMissedAndReplayed = `exists (select from replays r join replay_items i on i.replay_id = r.id
            where r.tenant_id = e.tenant_id and r.finished_at is null and i.event_id = e.id and i.state = 'waiting')`;

/**
 * What goes after its time, batch by batch. Each statement locks rows of one table only, and none that somebody else has locked;
 * it removes only what nothing refers to any more. So purges meet neither each other nor those who write, in whatever order.
 */
export class RetentionStore {
  constructor(
    private readonly db: DataSource,
    private readonly retention: Retention,
    private readonly batch = purgeBatch,
  ) {}

  async purge(step: PurgeStep, after: string | null): Promise<PurgeBatch> {
    const { payloadsMs, attemptsMs, deliveriesMs, eventsMs, noticesMs } = this.retention;
    switch (step) {
      case 'idempotency_keys':
        return this.run(purgeKeys, [], after);
      case 'payloads':
        return this.run(purgePayloads, [payloadsMs], after);
      case 'attempts':
        return this.run(purgeAttempts, [attemptsMs, lastId(idPrefixes.attempt, attemptsMs)], after);
      case 'letters':
        return this.run(purgeLetters, [deliveriesMs], after);
      case 'replays':
        return this.run(purgeReplays, [deliveriesMs], after);
      case 'deliveries':
        return this.run(purgeDeliveries, [deliveriesMs, lastId(idPrefixes.delivery, deliveriesMs)], after);
      case 'events':
        return this.run(purgeEvents, [eventsMs], after);
      case 'notices':
        return this.run(purgeNotices, [noticesMs, lastId(idPrefixes.notice, noticesMs)], after);
    }
  }

  private async run(statement: string, values: readonly unknown[], after: string | null): Promise<PurgeBatch> {
    const [row] = await this.db.query<{ looked: number; removed: number; furthest: string | null }[]>(
      `${statement} select (select count(*)::int from looked) as looked, (select count(*)::int from done) as removed,
                           (select max(position) from looked) as furthest`,
      [after ?? '', this.batch, ...values],
    );
    const { looked, removed, furthest } = row ?? { looked: 0, removed: 0, furthest: null };
    return { removed, after: looked < this.batch ? null : furthest };
  }
}

/** Ids are in the order of time, so that a walk over them needs no index by time. */
function lastId(prefix: IdPrefix, ageMs: number): string {
  return idsAround(prefix, { createdBefore: new Date(Date.now() - ageMs) }).to ?? prefix;
}

const older = (column: string): string => `${column} < now() - $3::float8 * interval '1 ms'`;

/** A time and a number as text whose order is theirs; and what such a text says. */
const position = (time: string, seq: string): string =>
  `to_char(${time}, 'YYYY-MM-DD HH24:MI:SS.MS') || '|' || lpad(${seq}::text, 19, '0')`;
const afterPosition = `case when $1 = '' then '-infinity'::timestamptz else split_part($1, '|', 1)::timestamptz end,
                       case when $1 = '' then 0 else split_part($1, '|', 2)::bigint end`;

const purgeKeys = `
  with looked as materialized (
    select tenant_id, key, key as position from idempotency_keys
     where created_at < now() - interval '25 hours' and $1::text is not null order by created_at limit $2 for update skip locked
  ), done as (
    delete from idempotency_keys k using looked l where k.tenant_id = l.tenant_id and k.key = l.key returning 1
  )`;

/** An open delivery, a letter that may be replayed and a replay that is at work need it still. */
const purgePayloads = `
  with looked as materialized (
    select tenant_id, id, ${position('accepted_at', 'seq')} as position from events
     where payload_purged_at is null and ${older('accepted_at')} and (accepted_at, seq) > (${afterPosition})
     order by accepted_at, seq limit $2
  ), chosen as materialized (
    select e.tenant_id, e.id from looked join events e using (tenant_id, id)
     where e.payload_purged_at is null and not ${isMissedAndReplayed}
       and not exists (select from deliveries d
                        where d.tenant_id = e.tenant_id and d.event_id = e.id
                          and (d.status in ${open} or ${hasOpenLetter('d.id')} or ${isReplayed('d.id')}))
       for no key update of e skip locked
  ), renditions as (
    delete from event_renditions r using chosen c where r.tenant_id = c.tenant_id and r.event_id = c.id
  ), done as (
    update events e set data = null, payload_purged_at = now() from chosen c
     where e.tenant_id = c.tenant_id and e.id = c.id returning 1
  )`;

const purgeAttempts = `
  with looked as materialized (
    select id, delivery_id, id as position from attempts
     where id > $1 and id < $4 and ${older('started_at')} order by id limit $2
  ), chosen as materialized (
    select a.id from looked join attempts a using (id) join deliveries d on d.id = a.delivery_id
     where d.status not in ${open} and not ${hasOpenLetter('d.id')}
       for update of a skip locked
  ), done as (
    delete from attempts a using chosen c where a.id = c.id returning 1
  )`;

const purgeLetters = `
  with looked as materialized (
    select delivery_id, round, ${position('resolved_at', 'seq')} as position from dead_letters
     where resolved_at is not null and ${older('resolved_at')} and (resolved_at, seq) > (${afterPosition})
     order by resolved_at, seq limit $2 for update skip locked
  ), done as (
    delete from dead_letters l using looked c where l.delivery_id = c.delivery_id and l.round = c.round returning 1
  )`;

/** The items of a replay first, since they are many. */
const purgeReplays = `
  with looked as materialized (
    select i.replay_id, i.seq, i.replay_id as position from replays r join replay_items i on i.replay_id = r.id
     where ${older('r.finished_at')} and r.id >= $1 order by i.replay_id, i.seq limit $2 for update of i skip locked
  ), items as (
    delete from replay_items i using looked l where i.replay_id = l.replay_id and i.seq = l.seq returning 1
  ), empty as materialized (
    select r.id from replays r
     where ${older('r.finished_at')} and not exists (select from replay_items i where i.replay_id = r.id)
     order by r.id limit $2 for update skip locked
  ), done as (
    delete from replays r using empty e where r.id = e.id returning 1
  )`;

const purgeDeliveries = `
  with looked as materialized (
    select id, id as position from deliveries where id > $1 and id < $4 and ${older('created_at')} order by id limit $2
  ), chosen as materialized (
    select d.id from looked join deliveries d using (id)
     where d.status not in ${open} and ${older('d.updated_at')} and not ${isReplayed('d.id')}
       and not exists (select from attempts a where a.delivery_id = d.id)
       and not exists (select from dead_letters l where l.delivery_id = d.id)
       for update of d skip locked
  ), done as (
    delete from deliveries d using chosen c where d.id = c.id returning 1
  )`;

const purgeEvents = `
  with looked as materialized (
    select tenant_id, id, ${position('accepted_at', 'seq')} as position from events
     where payload_purged_at is not null and ${older('accepted_at')} and (accepted_at, seq) > (${afterPosition})
     order by accepted_at, seq limit $2
  ), chosen as materialized (
    select e.tenant_id, e.id from looked join events e using (tenant_id, id)
     where not exists (select from deliveries d where d.tenant_id = e.tenant_id and d.event_id = e.id) and not ${isMissedAndReplayed}
       for update of e skip locked
  ), done as (
    delete from events e using chosen c where e.tenant_id = c.tenant_id and e.id = c.id returning 1
  )`;

/** The newest of its kind says what an endpoint's owner knows already: without it they would be told again. */
const purgeNotices = `
  with looked as materialized (
    select id, id as position from notices where id > $1 and id < $4 and ${older('created_at')} order by id limit $2
  ), chosen as materialized (
    select n.id from looked join notices n using (id)
     where n.mail_status <> 'pending'
       and (exists (select from notices newer where newer.endpoint_id = n.endpoint_id and newer.type = n.type and newer.id > n.id)
            or exists (select from endpoints e where e.id = n.endpoint_id and e.deleted_at is not null))
       for update of n skip locked
  ), done as (
    delete from notices n using chosen c where n.id = c.id returning 1
  )`;
