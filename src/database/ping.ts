import { Client } from 'pg';

/** Logs in, asks for the version and leaves. @throws what the driver says when the database doesn't answer. */
export async function pingDatabase(url: string, timeoutMs = 5_000): Promise<{ readonly version: string }> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs });
  // A connection that breaks while idle is an event of its own, and unhandled it would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
    return { version: rows[0]?.server_version ?? 'unknown' };
  } finally {
    await client.end().catch(() => undefined);
  }
}
