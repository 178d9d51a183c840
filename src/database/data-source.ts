import { DataSource, type QueryRunner, type ReplicationMode } from 'typeorm';
import { NoConnectionError } from './database-errors.js';
import { Initial1764500000000 } from './migrations/1764500000000-initial.js';
import { EndpointSettings1764600000000 } from './migrations/1764600000000-endpoint-settings.js';
import { EndpointHealth1764700000000 } from './migrations/1764700000000-endpoint-health.js';
import { SeeAndRepair1764800000000 } from './migrations/1764800000000-see-and-repair.js';
import { Credentials1765000000000 } from './migrations/1765000000000-credentials.js';

export type { DataSource };

/** Any number that no other program is likely to lock. */
const migrationLock = 7_406_200_031;

export interface DatabaseOptions {
  readonly url: string;
  readonly poolSize: number;
}

/** Makes the errors of a pool without connections recognisable: they are plain ones, and all that tells them apart is their text. */
class MarkingDataSource extends DataSource {
  override createQueryRunner(mode?: ReplicationMode): QueryRunner {
    const runner = super.createQueryRunner(mode);
    const connect = runner.connect.bind(runner) as () => Promise<unknown>;
    runner.connect = () =>
      connect().catch((error: unknown) => {
        throw new NoConnectionError(error);
      });
    return runner;
  }
}

/** TypeORM gives connections, transactions and migrations; the statements are SQL, since each of them is a promise (docs/adr/0005). */
export function createDataSource({ url, poolSize }: DatabaseOptions): DataSource {
  return new MarkingDataSource({
    type: 'postgres',
    url,
    poolSize,
    migrations: [
      Initial1764500000000,
      EndpointSettings1764600000000,
      EndpointHealth1764700000000,
      SeeAndRepair1764800000000,
      Credentials1765000000000,
    ],
    migrationsTableName: 'schema_migrations',
    migrationsTransactionMode: 'each',
    applicationName: 'posthorn',
    // A database that is away must be noticed within seconds, by whoever waits for a connection or an answer.
    connectTimeoutMS: 3_000,
    extra: {
      connectionTimeoutMillis: 3_000,
      idle_in_transaction_session_timeout: 10_000,
      statement_timeout: 30_000,
      query_timeout: 35_000,
      keepAlive: true,
      // Every time that we compare or print is UTC, whatever the server's zone is.
      options: '-c timezone=UTC',
    },
    poolErrorHandler: () => {
      // A broken idle connection is replaced by the pool; without a handler it would end the process.
    },
  });
}

/**
 * Applies what is missing, then does the rest that only one process may do at a time. Several may start at once: one works, the
 * others wait for it.
 */
export async function migrate(
  dataSource: DataSource,
  afterwards: () => Promise<void> = async () => undefined,
): Promise<void> {
  const runner = dataSource.createQueryRunner();
  try {
    await runner.query('select pg_advisory_lock($1)', [migrationLock]);
    await dataSource.runMigrations();
    await afterwards();
  } finally {
    await runner.query('select pg_advisory_unlock($1)', [migrationLock]).catch(() => undefined);
    await runner.release();
  }
}
