import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { cacheDirectory } from '../../src/embedded/cache-dir.js';
import { startEmbeddedPostgres } from '../../src/embedded/embedded-postgres.js';
import { startEmbeddedTemporal } from '../../src/embedded/embedded-temporal.js';
import { findFreePorts } from '../../src/embedded/ports.js';
import { silentProgress } from '../../src/embedded/progress.js';
import { findTemporalCli } from '../../src/embedded/temporal-cli.js';

export interface EngineOptions {
  /** Keep working in the directory and on the port of an earlier engine, as after a crash. */
  readonly dataDir?: string;
  readonly port?: number;
  readonly uiPort?: number;
}

/** A directory that every user may enter: as root, Postgres runs as somebody else. */
export function makeTestDataDir(prefix = 'posthorn-test-'): string {
  const directory = mkdtempSync(join(tmpdir(), prefix));
  chmodSync(directory, 0o711);
  return directory;
}

/** A Postgres of its own in a temporary directory; `stop()` removes the directory unless the caller brought it. */
export async function startTestPostgres(options: EngineOptions & { readonly durable?: boolean } = {}) {
  const dataDir = options.dataDir ?? makeTestDataDir();
  const port = options.port ?? (await freePort());
  const postgres = await startEmbeddedPostgres({
    dataDir,
    port,
    progress: silentProgress,
    // No test pulls the plug of the machine; kill -9 loses nothing without these.
    settings: options.durable ? {} : { fsync: 'off', full_page_writes: 'off', max_connections: '200' },
  });
  return {
    ...postgres,
    dataDir,
    port,
    async stop(how: { readonly graceMs?: number } = {}): Promise<void> {
      await postgres.stop(how);
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** A Temporal development server of its own in a temporary directory, without the Web UI unless a port is given. */
export async function startTestDevServer(options: EngineOptions & { readonly namespace?: string } = {}) {
  const dataDir = options.dataDir ?? makeTestDataDir();
  const port = options.port ?? (await freePort());
  const cli = await findTestTemporalCli();
  const namespace = options.namespace ?? 'default';
  const uiPort = options.uiPort ?? null;
  const temporal = await startEmbeddedTemporal({ cli, dataDir, port, uiPort, namespace, progress: silentProgress });
  return {
    ...temporal,
    cli,
    namespace,
    dataDir,
    port,
    async stop(how: { readonly graceMs?: number } = {}): Promise<void> {
      await temporal.stop(how);
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** The Temporal CLI that the product would use. */
export const findTestTemporalCli = (): Promise<string> =>
  findTemporalCli({
    cliPath: process.env['TEMPORAL_CLI_PATH'] ?? null,
    cacheDir: cacheDirectory(process.env, '.posthorn'),
    progress: silentProgress,
  });

/** Creates an empty database with a random name on the server of `adminUrl`, and answers its URL. */
export async function createTestDatabase(adminUrl: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const client = new Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}

async function freePort(): Promise<number> {
  const [port] = await findFreePorts(1);
  if (port === undefined) throw new Error('no free port');
  return port;
}
