import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Lists that stay quick, letters that can be handled, the order of the event feed, replays, and what is kept for how long. */
export class SeeAndRepair1764800000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`create index deliveries_by_type on deliveries (tenant_id, type, id)`);
    // What goes well is most of all rows, and needs neither index: it is found by walking.
    await db.query(`
      create index deliveries_by_http_status on deliveries (tenant_id, last_status_code, id) where last_status_code <> 200`);
    await db.query(`
      create index deliveries_by_reason on deliveries (tenant_id, reason, id) where reason not in ('published', 'delivered')`);
    await db.query(`
      alter table dead_letters
        -- The order of lists: two letters may have the same time.
        add column seq bigint generated always as identity,
        -- The key that resolved it by hand, and why.
        add column resolved_by text,
        add column resolved_reason text`);
    await db.query(`create index dead_letters_in_order on dead_letters (tenant_id, seq)`);
    await db.query(`create index dead_letters_by_endpoint on dead_letters (tenant_id, endpoint_id, seq)`);
    await db.query(`create index dead_letters_by_event on dead_letters (tenant_id, event_id, seq)`);
    await db.query(`create index dead_letters_by_type on dead_letters (tenant_id, type, seq)`);
    await db.query(`create index dead_letters_by_reason on dead_letters (tenant_id, reason, seq)`);
    await db.query(`create index dead_letters_by_http_status on dead_letters (tenant_id, last_status_code, seq)`);
    await db.query(`create index dead_letters_by_time on dead_letters (tenant_id, created_at)`);
    await db.query(
      `create index dead_letters_open_in_order on dead_letters (tenant_id, seq) where resolved_at is null`,
    );
    await db.query(`
      create index dead_letters_by_resolution on dead_letters (tenant_id, resolution, seq) where resolved_at is not null`);
    // A delivery that failed again has a newer letter, which stands for it: there is one open letter a delivery at most,
    // whoever writes it.
    await db.query(`
      create function supersede_letters() returns trigger language plpgsql as $$
      begin
        update dead_letters l set resolved_at = now(), resolution = 'replayed'
          from added a where l.delivery_id = a.delivery_id and l.round < a.round and l.resolved_at is null;
        return null;
      end $$`);
    await db.query(`
      create trigger dead_letters_supersede after insert on dead_letters
      referencing new table as added for each statement execute function supersede_letters()`);
    await db.query(`
      update dead_letters l set resolved_at = now(), resolution = 'replayed'
       where resolved_at is null
         and exists (select from dead_letters n where n.delivery_id = l.delivery_id and n.round > l.round)`);
    await db.query(`create index dead_letters_to_expire on dead_letters (expires_at) where resolved_at is null`);
    await db.query(`
      alter table events
        -- Rises when the database was restored into a cluster whose transaction ids are lower (see EventFeed).
        add column epoch integer not null default 0,
        -- Null once the payload was purged.
        alter column data drop not null,
        add column payload_purged_at timestamptz(3),
        -- The trace that its attempts belong to (W3C Trace Context).
        add column traceparent text`);
    await db.query(`create index events_in_order on events (tenant_id, epoch, xid, seq)`);
    await db.query(`create index events_by_type on events (tenant_id, type, epoch, xid, seq)`);
    // Purging goes by age, and an event loses its payload first: each index holds only what its step has yet to look at.
    await db.query(`create index events_to_strip on events (accepted_at, seq) where payload_purged_at is null`);
    await db.query(`create index events_stripped on events (accepted_at, seq) where payload_purged_at is not null`);
    await db.query(
      `create index dead_letters_resolved on dead_letters (resolved_at, seq) where resolved_at is not null`,
    );
    // Empty but for a fault: such a row would be found by nobody.
    await db.query(`
      create index deliveries_unswept on deliveries (id) where status in ('pending', 'retrying') and sweep_after is null`);
    await db.query(`alter table attempts add column endpoint_id text`);
    await db.query(`update attempts a set endpoint_id = d.endpoint_id from deliveries d where d.id = a.delivery_id`);
    await db.query(`create index attempts_by_endpoint on attempts (endpoint_id, started_at)`);
    await db.query(`
      create table replays (
        id text primary key,
        tenant_id text not null,
        status text not null check (status in ('running', 'paused', 'completed', 'cancelled')),
        kind text not null check (kind in ('ids', 'filter', 'letters', 'recover')),
        -- What was asked for, a JSON object.
        request text not null,
        rate_per_second integer not null check (rate_per_second > 0),
        requested_by text,
        request_reason text,
        total integer not null,
        started integer not null default 0,
        skipped integer not null default 0,
        -- Up to then the rate is used up (microseconds count here).
        paced_until timestamptz,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        finished_at timestamptz(3),
        -- The sweeper starts or wakes the workflow from then on.
        sweep_after timestamptz(3)
      ) with (fillfactor = 80)`);
    await db.query(`create index replays_in_order on replays (tenant_id, id)`);
    await db.query(`create index replays_to_sweep on replays (sweep_after) where sweep_after is not null`);
    await db.query(`
      create table replay_items (
        replay_id text not null references replays on delete cascade,
        seq integer not null,
        -- A delivery to be sent again; of a missed event the one that is made for it, once it is started.
        delivery_id text,
        -- An event that never became a delivery for the endpoint.
        event_id text,
        endpoint_id text not null,
        -- The delivery's round when it was chosen, and whether it had succeeded by then.
        round integer,
        had_succeeded boolean not null default false,
        state text not null default 'waiting' check (state in ('waiting', 'started', 'skipped')),
        -- Why it was skipped, such as 'succeeded_meanwhile'.
        note text,
        primary key (replay_id, seq),
        unique (replay_id, delivery_id),
        unique (replay_id, event_id),
        check (delivery_id is not null or event_id is not null)
      ) with (fillfactor = 80)`);
    await db.query(`create index replay_items_waiting on replay_items (replay_id, seq) where state = 'waiting'`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`drop table replay_items, replays`);
    await db.query(`drop index attempts_by_endpoint`);
    await db.query(`alter table attempts drop column endpoint_id`);
    await db.query(`drop index events_stripped, events_to_strip, events_by_type, events_in_order`);
    await db.query(`update events set data = 'null' where data is null`);
    await db.query(
      `alter table events drop column traceparent, drop column payload_purged_at, drop column epoch, alter column data set not null`,
    );
    await db.query(`drop index dead_letters_resolved, deliveries_unswept`);
    await db.query(`drop trigger dead_letters_supersede on dead_letters`);
    await db.query(`drop function supersede_letters`);
    await db.query(`
      drop index dead_letters_by_resolution, dead_letters_open_in_order, dead_letters_by_time, dead_letters_by_http_status,
                 dead_letters_by_reason, dead_letters_by_type, dead_letters_by_event, dead_letters_to_expire,
                 dead_letters_by_endpoint, dead_letters_in_order`);
    await db.query(`alter table dead_letters drop column seq, drop column resolved_by, drop column resolved_reason`);
    await db.query(`drop index deliveries_by_reason, deliveries_by_http_status, deliveries_by_type`);
  }
}
