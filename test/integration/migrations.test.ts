import type { MigrationInterface, QueryRunner } from 'typeorm';
import { expect, inject, it } from 'vitest';
import { createDataSource, migrate } from '../../src/database/data-source.js';
import { createTestDatabase } from '../support/engines.js';

class Slow1800000000000 implements MigrationInterface {
  async up(db: QueryRunner): Promise<void> {
    await db.query('select pg_sleep(1)');
    await db.query('create table slowly_made (n integer)');
  }
  async down(): Promise<void> {}
}

it('a migration may take longer than any other statement', async () => {
  const db = createDataSource({ url: await createTestDatabase(inject('postgresUrl')), poolSize: 2 });
  const { extra } = db.options as { extra: object };
  db.setOptions({ migrations: [Slow1800000000000], extra: { ...extra, statement_timeout: 300, query_timeout: 600 } });
  await db.initialize();
  try {
    await expect(db.query('select pg_sleep(1)')).rejects.toThrow();
    await migrate(db);
    expect(await db.query('select * from slowly_made')).toEqual([]);
    // There is nothing left to do.
    await migrate(db);
  } finally {
    await db.destroy();
  }
});
