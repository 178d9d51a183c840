import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Who sends a delivery's first attempt without a workflow, and whether they are still there. */
export class ExpressLane1764880000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    // Without an index: rows that are due are found by sweep_after, and only those are looked at.
    await db.query(`alter table deliveries add column lease_holder text`);
    await db.query(`
      create table lease_holders (
        id text primary key,
        -- By the database's clock; one that was not seen for some seconds holds nothing any more.
        seen_at timestamptz not null default now()
      )`);
    // Endpoints are never deleted, only marked: the check finds nothing, and locks the endpoint's row for each delivery.
    await db.query(`alter table deliveries drop constraint deliveries_endpoint_id_fkey`);
  }

  async down(db: QueryRunner): Promise<void> {
    await db.query(`alter table deliveries add foreign key (endpoint_id) references endpoints`);
    await db.query(`drop table lease_holders`);
    await db.query(`alter table deliveries drop column lease_holder`);
  }
}
