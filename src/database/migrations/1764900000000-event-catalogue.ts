import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Event types with their versions, the version that an endpoint is pinned to, data as they were converted, and content filters. */
export class EventCatalogue1764900000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query(`
      create table event_types (
        tenant_id text not null,
        name text not null,
        -- A JSON object: all that was registered.
        definition text not null,
        -- A JSON object: what counts at delivery. Null: as published. Attempts read this, and no schemas.
        rules text,
        -- The newest version; null where there is none.
        newest text,
        enforce boolean not null default false,
        -- The order of lists.
        seq bigint generated always as identity,
        -- Tells one state of the definition from another, for what is kept in memory.
        revision bigint generated always as identity,
        created_at timestamptz(3) not null default now(),
        updated_at timestamptz(3) not null default now(),
        primary key (tenant_id, name)
      )`);
    await db.query(`create unique index event_types_in_order on event_types (tenant_id, seq)`);
    await db.query(`
      create table event_renditions (
        tenant_id text not null,
        event_id text not null,
        api_version text not null,
        -- The event's data in this version: made once, so that every attempt sends the same bytes.
        data text not null,
        created_at timestamptz(3) not null default now(),
        primary key (tenant_id, event_id, api_version),
        foreign key (tenant_id, event_id) references events on delete cascade
      )`);
    await db.query(`
      alter table endpoints
        -- A date, or 'newest'.
        add column api_version text not null default 'newest',
        -- A JSON object; null: every event of its types.
        add column filter text`);
    // Who was there before gets what there was.
    await db.query(`update endpoints set api_version = to_char(created_at at time zone 'UTC', 'YYYY-MM-DD')`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`alter table endpoints drop column api_version, drop column filter`);
    await db.query(`drop table event_renditions, event_types`);
  }
}
