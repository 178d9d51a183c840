import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The first schema. Three choices run through it:
 * - texts that go out byte for byte (`events.data`) are `text`, never `json`, which changes bytes;
 * - a delivery row is also the outbox: an open row whose `sweep_after` has passed is looked at by the sweeper;
 * - closed lists are CHECKed, so that a status nobody knows can't be written.
 */
export class Initial1764500000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`
      create table api_keys (
        id text primary key,
        -- null: a service key, which acts for every tenant.
        tenant_id text,
        name text not null,
        key_hash bytea not null unique,
        created_at timestamptz(3) not null default now(),
        revoked_at timestamptz(3)
      )`);
    await db.query(`
      create table endpoints (
        id text primary key,
        tenant_id text not null,
        url text not null,
        events text[] not null,
        -- What the fan-out compares; made from \`events\` by eventFilterToLike().
        event_likes text[] not null,
        description text,
        profile text not null,
        timeout_ms integer not null,
        -- null: the profile's.
        retry_waits_ms integer[],
        status text not null check (status in ('pending_verification', 'active', 'paused', 'disabled', 'expired')),
        status_reason text,
        status_changed_at timestamptz(3) not null default now(),
        last_success_at timestamptz(3),
        failing_since timestamptz(3),
        refused_since timestamptz(3),
        -- The last attempt succeeded in under a second: the next first attempt may be a local activity.
        quick boolean not null default true,
        -- The whole endpoint rests until then (Retry-After).
        not_before timestamptz(3),
        -- Raised with every change of health; \`health_seen\` is the version that the endpoint's workflow has dealt with.
        health_version bigint not null default 0,
        health_seen bigint not null default 0,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        deleted_at timestamptz(3)
      ) with (fillfactor = 80)`);
    await db.query(`create index endpoints_by_tenant on endpoints (tenant_id, id) where deleted_at is null`);
    await db.query(`
      create table endpoint_secrets (
        id bigint generated always as identity primary key,
        endpoint_id text not null references endpoints,
        -- AES-256-GCM under the key ring; the plain text is nowhere.
        sealed text not null,
        created_at timestamptz(3) not null default now(),
        -- null: the current secret.
        expires_at timestamptz(3)
      )`);
    await db.query(`create index endpoint_secrets_by_endpoint on endpoint_secrets (endpoint_id, id)`);
    await db.query(`
      create table events (
        tenant_id text not null,
        id text not null,
        type text not null,
        source text,
        subject text,
        api_version text,
        -- Byte for byte as published.
        data text not null,
        created_at timestamptz(3) not null,
        accepted_at timestamptz(3) not null default now(),
        -- SHA-256 of the published object: tells the same event from another one under the same id.
        body_hash bytea not null,
        -- The order of GET /events: a sequence alone would hide events whose transaction commits late.
        xid xid8 not null default pg_current_xact_id(),
        seq bigint generated always as identity,
        primary key (tenant_id, id)
      )`);
    await db.query(`
      create table deliveries (
        id text primary key,
        tenant_id text not null,
        event_id text not null,
        endpoint_id text not null references endpoints,
        type text not null,
        status text not null check (status in ('pending', 'retrying', 'succeeded', 'failed', 'held', 'cancelled')),
        reason text not null,
        -- What the acting person wrote beside a redelivery or a cancellation, and the key that acted.
        request_reason text,
        requested_by text,
        round integer not null default 1,
        -- Attempts in all rounds, and in this one.
        attempt_count integer not null default 0,
        round_attempts integer not null default 0,
        next_attempt_at timestamptz(3),
        -- An open row is looked at by the sweeper from then on; null when closed.
        sweep_after timestamptz(3),
        -- A redelivery of a waiting row was accepted and its workflow may not know yet.
        wake_requested boolean not null default false,
        last_status_code integer,
        last_error text,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        foreign key (tenant_id, event_id) references events
      ) with (fillfactor = 80)`);
    await db.query(`create index deliveries_in_order on deliveries (tenant_id, id)`);
    await db.query(`create index deliveries_by_status on deliveries (tenant_id, status, id)`);
    await db.query(`create index deliveries_by_event on deliveries (tenant_id, event_id, id)`);
    await db.query(`create index deliveries_by_endpoint on deliveries (endpoint_id, status, id)`);
    await db.query(`create index deliveries_to_sweep on deliveries (sweep_after) where sweep_after is not null`);
    await db.query(`
      create table attempts (
        id text primary key,
        delivery_id text not null references deliveries,
        number integer not null,
        round integer not null,
        run_id text not null,
        sequence integer not null,
        started_at timestamptz(3) not null,
        duration_ms integer not null,
        status_code integer,
        error_code text,
        error_message text,
        -- A JSON array of [name, value] as text; the answer's bytes as they came.
        response_headers text,
        response_body bytea,
        response_truncated boolean not null default false,
        remote_address text,
        resent boolean not null default false,
        -- What the row said after this attempt: a repeated execution returns it instead of sending again.
        outcome text not null,
        unique (delivery_id, run_id, sequence),
        unique (delivery_id, number)
      )`);
    await db.query(`
      create table dead_letters (
        delivery_id text not null references deliveries,
        round integer not null,
        tenant_id text not null,
        event_id text not null,
        endpoint_id text not null,
        type text not null,
        reason text not null,
        attempts integer not null,
        last_status_code integer,
        last_error text,
        last_response_headers text,
        last_response_body bytea,
        created_at timestamptz(3) not null default now(),
        expires_at timestamptz(3) not null,
        announced_at timestamptz(3),
        resolved_at timestamptz(3),
        resolution text check (resolution in ('replayed', 'expired', 'discarded')),
        primary key (delivery_id, round)
      )`);
    await db.query(`create index dead_letters_unannounced on dead_letters (endpoint_id) where announced_at is null`);
    await db.query(
      `create index dead_letters_open on dead_letters (endpoint_id, created_at) where resolved_at is null`,
    );
    await db.query(`
      create table idempotency_keys (
        tenant_id text not null,
        key text not null,
        body_hash bytea not null,
        -- Null only inside the transaction that is still at work.
        status_code integer,
        answer text,
        created_at timestamptz(3) not null default now(),
        primary key (tenant_id, key)
      )`);
    await db.query(`create index idempotency_keys_by_age on idempotency_keys (created_at)`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(
      `drop table idempotency_keys, dead_letters, attempts, deliveries, events, endpoint_secrets, endpoints, api_keys`,
    );
  }
}
