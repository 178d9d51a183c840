import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Lists that stay quick, letters that can be handled, the order of the event feed, replays, and what is kept for how long. */
export class SeeAndRepair1764800000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`create index deliveries_by_type on deliveries (tenant_id, type, id)`);
    // Successes need no index by their status: they are most of all rows.
    await db.query(
      `create index deliveries_by_http_status on deliveries (tenant_id, last_status_code, id) where last_status_code >= 300`,
    );
    await db.query(`
      alter table dead_letters
        -- The order of lists: two letters may have the same time.
        add column seq bigint generated always as identity,
        -- The key that resolved it by hand, and why.
        add column resolved_by text,
        add column resolved_reason text`);
    await db.query(`create index dead_letters_in_order on dead_letters (tenant_id, seq)`);
    await db.query(`create index dead_letters_by_endpoint on dead_letters (tenant_id, endpoint_id, seq)`);
    await db.query(`create index dead_letters_to_expire on dead_letters (expires_at) where resolved_at is null`);
    await db.query(`
      alter table events
        -- Rises when the database was restored into a cluster whose transaction ids are lower (see EventFeed).
        add column epoch integer not null default 0,
        -- Null once the payload was purged.
        alter column data drop not null,
        add column payload_purged_at timestamptz(3)`);
    await db.query(`create index events_in_order on events (tenant_id, epoch, xid, seq)`);
    await db.query(`create index events_by_type on events (tenant_id, type, epoch, xid, seq)`);
    await db.query(`create index events_by_age on events using brin (accepted_at)`);
    await db.query(`alter table attempts add column endpoint_id text`);
    await db.query(`update attempts a set endpoint_id = d.endpoint_id from deliveries d where d.id = a.delivery_id`);
    await db.query(`create index attempts_by_endpoint on attempts (endpoint_id, started_at)`);
    await db.query(`create index attempts_by_age on attempts using brin (started_at)`);
    await db.query(`
      create table replays (
        id text primary key,
        tenant_id text not null,
        status text not null check (status in ('running', 'paused', 'completed', 'cancelled')),
        -- 'filter', 'ids', 'recover'; with what was asked for, a JSON object.
        kind text not null check (kind in ('filter', 'ids', 'recover')),
        request text not null,
        rate_per_second integer not null,
        requested_by text,
        request_reason text,
        total integer not null default 0,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        finished_at timestamptz(3),
        -- The sweeper starts the workflow from then on.
        sweep_after timestamptz(3)
      )`);
    await db.query(`create index replays_in_order on replays (tenant_id, id)`);
    await db.query(`create index replays_to_sweep on replays (sweep_after) where sweep_after is not null`);
    await db.query(`
      create table replay_items (
        replay_id text not null references replays on delete cascade,
        seq integer not null,
        -- A delivery to be sent again, or an event that never became one for the endpoint.
        delivery_id text,
        event_id text,
        endpoint_id text not null,
        state text not null default 'waiting' check (state in ('waiting', 'started', 'skipped')),
        -- Why it was skipped, such as 'succeeded_meanwhile'.
        note text,
        primary key (replay_id, seq),
        unique (replay_id, delivery_id),
        check (delivery_id is not null or event_id is not null)
      )`);
    await db.query(`create index replay_items_waiting on replay_items (replay_id, seq) where state = 'waiting'`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`drop table replay_items, replays`);
    await db.query(`drop index attempts_by_age, attempts_by_endpoint`);
    await db.query(`alter table attempts drop column endpoint_id`);
    await db.query(`drop index events_by_age, events_by_type, events_in_order`);
    await db.query(`update events set data = 'null' where data is null`);
    await db.query(
      `alter table events drop column payload_purged_at, drop column epoch, alter column data set not null`,
    );
    await db.query(`drop index dead_letters_to_expire, dead_letters_by_endpoint, dead_letters_in_order`);
    await db.query(`alter table dead_letters drop column seq, drop column resolved_by, drop column resolved_reason`);
    await db.query(`drop index deliveries_by_http_status, deliveries_by_type`);
  }
}
