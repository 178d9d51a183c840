import { Client } from 'pg';

/** Postgres and Temporal, that everything in a run shares. */
export interface Engines {
  readonly name: string;
  /** A superuser's, on a database that nothing under test uses. */
  readonly postgresUrl: string;
  readonly postgresPid: number;
  readonly temporalAddress: string;
  readonly temporalPid: number;
  /** Where data of the processes under test may be put; removed at the end. */
  readonly workDir: string;
  stop(): Promise<void>;
}

/** Statements are counted by an extension. Durability stays as it is in production: this is what a commit costs. */
export const measuredSettings = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'top',
  track_io_timing: 'off',
  max_connections: '300',
};

/** An empty database for one subject, and its URL. */
export async function createDatabase(engines: Engines, name: string): Promise<string> {
  const client = new Client({ connectionString: engines.postgresUrl });
  await client.connect();
  try {
    await client.query(`create database ${name}`);
  } finally {
    await client.end();
  }
  const url = new URL(engines.postgresUrl);
  url.pathname = `/${name}`;
  return url.href;
}
