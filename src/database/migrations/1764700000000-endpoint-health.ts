import type { MigrationInterface, QueryRunner } from 'typeorm';

/** How fast an endpoint may be sent to, what its owner was told, and deliveries that wait for their turn. */
export class EndpointHealth1764700000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`
      alter table endpoints
        -- 'probing': it failed several times in a row, or was just resumed: one request at a time. 'rising': it answers again:
        -- more from second to second.
        add column pace text not null default 'open' check (pace in ('open', 'probing', 'rising')),
        -- Failures in a row, counted no further than is needed to see that it is down.
        add column failure_streak smallint not null default 0,
        -- While probing: the next request may go from then on.
        add column probe_after timestamptz(3),
        add column rising_since timestamptz(3),
        add column resumed_at timestamptz(3)`);
    // Apart from the endpoint's row: under a rate limit every attempt writes here.
    await db.query(`
      create table endpoint_paces (
        endpoint_id text primary key references endpoints,
        -- The next free slot of the rate limit, for all attempts and for retries (microseconds count here).
        next_slot_at timestamptz not null default now(),
        next_retry_slot_at timestamptz not null default now(),
        -- Released since the rise that began then.
        rising_since timestamptz(3),
        released integer not null default 0,
        -- The backlog at the last look.
        backlog integer not null default 0,
        backlog_at timestamptz(3)
      ) with (fillfactor = 50)`);
    await db.query(`
      alter table deliveries
        -- It has its slot: nothing more is reserved for it. 'retry': it has the one among the retries only.
        add column slot text check (slot in ('taken', 'retry')),
        -- Since when it waits for its turn.
        add column held_since timestamptz(3),
        -- About the sender itself: its failures tell nobody anything, else a notice could bring a notice.
        add column operational boolean not null default false`);
    await db.query(
      `create index deliveries_by_held_since on deliveries (held_since) where status = 'held' and reason = 'rate_limited'`,
    );
    await db.query(`alter table events add column operational boolean not null default false`);
    await db.query(`
      create table notices (
        id text primary key,
        tenant_id text not null,
        endpoint_id text not null references endpoints,
        type text not null,
        -- One notice a type and episode, such as the time since when the endpoint fails: whoever tries again tells nothing twice.
        episode text not null,
        -- A JSON object.
        data text not null,
        created_at timestamptz(3) not null default now(),
        mail_to text,
        mail_status text not null check (mail_status in ('none', 'pending', 'sent', 'failed')),
        mail_attempts integer not null default 0,
        mail_next_at timestamptz(3),
        mail_sent_at timestamptz(3),
        mail_error text,
        unique (endpoint_id, type, episode)
      )`);
    await db.query(`create index notices_in_order on notices (tenant_id, id)`);
    // The last bad news of an endpoint.
    await db.query(`
      create index notices_of_trouble on notices (endpoint_id, created_at, id)
       where type in ('endpoint.failing', 'endpoint.refused', 'endpoint.disabled')`);
    // Costs next to nothing to keep: what was missed is counted from a time on.
    await db.query(`create index events_by_acceptance on events using brin (accepted_at)`);
    await db.query(`create index notices_to_mail on notices (endpoint_id, mail_next_at) where mail_status = 'pending'`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`drop index events_by_acceptance`);
    await db.query(`drop table notices, endpoint_paces`);
    await db.query(`alter table events drop column operational`);
    await db.query(`alter table deliveries drop column slot, drop column held_since, drop column operational`);
    await db.query(`
      alter table endpoints
        drop column pace, drop column failure_streak, drop column probe_after, drop column rising_since, drop column resumed_at`);
  }
}
