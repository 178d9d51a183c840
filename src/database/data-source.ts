import { DataSource, type DataSourceOptions, type QueryRunner, type ReplicationMode } from 'typeorm';
import { NoConnectionError } from './database-errors.js';
import { HotStatements } from './hot-statements.js';
import { Initial1764500000000 } from './migrations/1764500000000-initial.js';
import { EndpointSettings1764600000000 } from './migrations/1764600000000-endpoint-settings.js';
import { EndpointHealth1764700000000 } from './migrations/1764700000000-endpoint-health.js';
import { SeeAndRepair1764800000000 } from './migrations/1764800000000-see-and-repair.js';
import { DeliveryPast1764850000000 } from './migrations/1764850000000-delivery-past.js';
import { ExpressLane1764880000000 } from './migrations/1764880000000-express-lane.js';
import { EventCatalogue1764900000000 } from './migrations/1764900000000-event-catalogue.js';
import { Credentials1765000000000 } from './migrations/1765000000000-credentials.js';

export type { DataSource };

/** Any number that no other program is likely to lock. */
const migrationLock = 7_406_200_031;

export interface DatabaseOptions {
  readonly url: string;
  readonly poolSize: number;
}

/** A data source whose errors without a connection are recognisable (they are plain ones), and that has hot statements beside. */
export class Database extends DataSource {
  readonly hot: HotStatements;

  constructor(url: string, ...options: ConstructorParameters<typeof DataSource>) {
    super(...options);
    this.hot = new HotStatements({ connectionString: url, ...connectionSettings });
  }

  override async destroy(): Promise<void> {
    await this.hot.close();
    await super.destroy();
  }

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

const connectionSettings = {
  application_name: 'posthorn',
  // A database that is away must be noticed within seconds, by whoever waits for a connection or an answer.
  connectionTimeoutMillis: 3_000,
  idle_in_transaction_session_timeout: 10_000,
  statement_timeout: 30_000,
  query_timeout: 35_000,
  keepAlive: true,
  // Every time that we compare or print is UTC, whatever the server's zone is.
  options: '-c timezone=UTC',
} as const;

/** TypeORM gives connections, transactions and migrations; the statements are SQL, since each of them is a promise (docs/adr/0005). */
export function createDataSource({ url, poolSize }: DatabaseOptions): Database {
  return new Database(url, {
    type: 'postgres',
    url,
    poolSize,
    migrations: [
      Initial1764500000000,
      EndpointSettings1764600000000,
      EndpointHealth1764700000000,
      SeeAndRepair1764800000000,
      DeliveryPast1764850000000,
      ExpressLane1764880000000,
      EventCatalogue1764900000000,
      Credentials1765000000000,
    ],
    migrationsTableName: 'schema_migrations',
    migrationsTransactionMode: 'each',
    applicationName: connectionSettings.application_name,
    connectTimeoutMS: connectionSettings.connectionTimeoutMillis,
    extra: connectionSettings,
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
    if (await dataSource.showMigrations()) await runMigrations(dataSource);
    await afterwards();
  } finally {
    await runner.query('select pg_advisory_unlock($1)', [migrationLock]).catch(() => undefined);
    await runner.release();
  }
}

/** Over a connection of its own: an index or a column of a large table may take minutes, which no other statement may. */
async function runMigrations({ options }: DataSource): Promise<void> {
  const unlimited = { statement_timeout: 0, query_timeout: 0 };
  const patient = new Database((options as PostgresOptions).url!, {
    ...(options as PostgresOptions),
    poolSize: 1,
    extra: { ...(options.extra as object), ...unlimited },
  });
  await patient.initialize();
  try {
    await patient.runMigrations();
  } finally {
    await patient.destroy();
  }
}

type PostgresOptions = Extract<DataSourceOptions, { readonly type: 'postgres' }>;
