import { Client } from 'pg';

export interface PostgresCounters {
  /** Statements that a client sent to the subject's database, those inside of functions not counted. */
  readonly statements: number;
  readonly transactions: number;
  /** Written ahead by that database's statements, and by the whole server: of a production server, Temporal's too. */
  readonly walBytes: number;
  readonly serverWalBytes: number;
}

/** Reads over a connection to a database of its own, so that reading is not counted. */
export class PostgresMeter {
  private constructor(private readonly client: Client) {}

  static async open(adminUrl: string): Promise<PostgresMeter> {
    const client = new Client({ connectionString: adminUrl });
    await client.connect();
    await client.query('create extension if not exists pg_stat_statements');
    return new PostgresMeter(client);
  }

  async read(database: string): Promise<PostgresCounters> {
    const { rows } = await this.client.query<Record<keyof PostgresCounters, string>>(
      `select coalesce(sum(s.calls), 0) as statements, coalesce(sum(s.wal_bytes), 0) as "walBytes",
              (select xact_commit + xact_rollback from pg_stat_database where datname = $1) as transactions,
              pg_current_wal_lsn() - '0/0'::pg_lsn as "serverWalBytes"
         from pg_stat_statements s join pg_database d on d.oid = s.dbid where d.datname = $1`,
      [database],
    );
    const row = rows[0]!;
    return {
      statements: Number(row.statements),
      transactions: Number(row.transactions),
      walBytes: Number(row.walBytes),
      serverWalBytes: Number(row.serverWalBytes),
    };
  }

  async close(): Promise<void> {
    await this.client.end();
  }
}
