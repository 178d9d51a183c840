import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What an endpoint's owner sets, what we asked of it beside deliveries, and secrets that can be named. */
export class EndpointSettings1764600000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`
      alter table endpoints
        -- Raised with every change of settings: the ETag.
        add column version integer not null default 1,
        -- A JSON object of text by text.
        add column metadata text not null default '{}',
        -- Null in these four: the profile's.
        add column envelope text check (envelope in ('default', 'cloudevents')),
        add column signature text check (signature in ('default', 'standard_webhooks')),
        alter column timeout_ms drop not null,
        add column verification text check (verification in ('challenge', 'handshake', 'ping')),
        add column payload text not null default 'full' check (payload in ('full', 'thin')),
        -- A JSON object of name by value, sealed: values are often credentials.
        add column sealed_headers text,
        add column rate_limit_per_second integer check (rate_limit_per_second > 0),
        -- What the endpoint itself allowed in its handshake.
        add column allowed_rate_per_minute integer check (allowed_rate_per_minute > 0),
        add column max_in_flight integer check (max_in_flight > 0),
        add column expires_at timestamptz(3),
        add column owner_email text,
        add column ping_interval_ms bigint check (ping_interval_ms > 0),
        -- The sweeper tells the endpoint's workflow from then on: a change that nobody dealt with, or a deadline that passed.
        add column health_sweep_after timestamptz(3) default now()`);
    await db.query(
      `create index endpoints_to_tell on endpoints (health_sweep_after) where health_sweep_after is not null`,
    );
    await db.query(`
      create table endpoint_checks (
        endpoint_id text not null references endpoints,
        kind text not null check (kind in ('verification', 'ping', 'probe')),
        started_at timestamptz(3) not null default now(),
        tries integer not null default 0,
        -- Null: none is due.
        next_at timestamptz(3),
        last_at timestamptz(3),
        last_way text,
        last_status_code integer,
        last_error text,
        last_answer text,
        passed_at timestamptz(3),
        passed_way text,
        -- What a later consent has to bring along, sealed.
        sealed_token text,
        primary key (endpoint_id, kind)
      )`);
    // Endpoints from before were never asked.
    await db.query(`
      insert into endpoint_checks (endpoint_id, kind, started_at, passed_at)
      select id, 'verification', created_at, created_at from endpoints where status <> 'pending_verification'`);
    await db.query(`alter table endpoint_secrets rename column id to seq`);
    await db.query(`alter table endpoint_secrets add column id text`);
    await db.query(`update endpoint_secrets set id = 'sec_' || lpad(seq::text, 26, '0')`);
    await db.query(`alter table endpoint_secrets alter column id set not null, add unique (id)`);
    // What the publisher was told: a repeated event gets the first answer again.
    await db.query(`alter table deliveries add column published_status text not null default 'pending'`);
    await db.query(
      `create index deliveries_held on deliveries (endpoint_id, id) include (round_attempts) where status = 'held'`,
    );
    await db.query(`
      create table engine_state (
        name text primary key,
        value text not null,
        updated_at timestamptz(3) not null default now()
      )`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`drop table engine_state`);
    await db.query(`drop index deliveries_held`);
    await db.query(`alter table deliveries drop column published_status`);
    await db.query(`alter table endpoint_secrets drop column id`);
    await db.query(`alter table endpoint_secrets rename column seq to id`);
    await db.query(`drop table endpoint_checks`);
    await db.query(`
      alter table endpoints
        drop column version, drop column metadata, drop column envelope, drop column signature, drop column verification,
        drop column payload, drop column sealed_headers, drop column rate_limit_per_second, drop column allowed_rate_per_minute,
        drop column max_in_flight, drop column expires_at, drop column owner_email, drop column ping_interval_ms,
        drop column health_sweep_after`);
  }
}
