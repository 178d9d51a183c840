import { spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Client, type QueryResultRow } from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { endStaleChildren } from '../../../src/embedded/child-process.js';
import { readProcess } from '../../../src/embedded/process-identity.js';
import {
  postgresPackageDir,
  preparePostgresBinaries,
  repairLibraryLinks,
} from '../../../src/embedded/postgres/postgres-binaries.js';
import { choosePostgresUser, postgresEnv, asUser } from '../../../src/embedded/postgres/postgres-user.js';
import { runCommand } from '../../../src/embedded/run-command.js';
import { silentProgress } from '../../../src/embedded/progress.js';
import { createTestDatabase, makeTestDataDir, startTestPostgres } from '../../support/engines.js';

const cleanups: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

function temporaryDataDir(): string {
  const dataDir = makeTestDataDir();
  cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
}

async function start(options: Parameters<typeof startTestPostgres>[0]) {
  const postgres = await startTestPostgres(options);
  cleanups.push(() => postgres.stop({ graceMs: 0 }));
  return postgres;
}

async function query<T extends QueryResultRow>(url: string, sql: string): Promise<T[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(sql)).rows;
  } finally {
    await client.end();
  }
}

describe('embedded Postgres', () => {
  it('starts on loopback with a UTF-8 database in the C locale and durable settings', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    const { url } = await start({ dataDir, durable: true });
    const [row] = await query(
      url,
      `SELECT current_database() AS database, pg_encoding_to_char(encoding) AS encoding, datcollate,
              current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
              current_setting('listen_addresses') AS listen_addresses, current_setting('max_connections') AS max_connections
         FROM pg_database WHERE datname = current_database()`,
    );
    expect(row).toEqual({
      database: 'posthorn',
      encoding: 'UTF8',
      datcollate: 'C',
      fsync: 'on',
      synchronous_commit: 'on',
      listen_addresses: '127.0.0.1',
      max_connections: '100',
    });
    expect(statSync(join(dataDir, 'postgres-password')).mode & 0o777).toBe(0o600);
  });

  it('gives a test a database of its own', { timeout: 60_000 }, async () => {
    const { url } = await start({ dataDir: temporaryDataDir() });
    const [one, two] = await Promise.all([createTestDatabase(url), createTestDatabase(url)]);
    expect(one).not.toBe(two);
    await query(one, 'CREATE TABLE only_here (id int)');
    await expect(query(two, 'SELECT * FROM only_here')).rejects.toThrow(/does not exist/);
  });

  it('keeps committed rows over kill -9 and starts again in the same place', { timeout: 120_000 }, async () => {
    const dataDir = temporaryDataDir();
    const first = await start({ dataDir, durable: true });
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    const held = new Client({ connectionString: first.url });
    held.on('error', () => undefined);
    await held.connect();
    // A backend that computes when its postmaster dies doesn't notice for a while, and holds on to the shared memory.
    const working = held.query('SELECT count(*) FROM generate_series(1, 12000000)').catch(() => undefined);
    const busy =
      "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 1200%' AND pid <> pg_backend_pid()";
    while ((await query(first.url, busy)).length === 0) continue;
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    const second = await start({ dataDir, port: first.port, durable: true });
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    expect(second.url).toBe(first.url);
    await working;
    await held.end().catch(() => undefined);
  });

  it('starts where postmaster.pid names a process that is a stranger', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    const first = await start({ dataDir });
    const pidFile = join(dataDir, 'postgres', 'postmaster.pid');
    const text = readFileSync(pidFile, 'utf8');
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    writeFileSync(pidFile, text.replace(/^\d+/, String(process.ppid)));
    const second = await start({ dataDir, port: first.port });
    expect(await query(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it(
    "ends a killed parent's Postgres, found by its pid file, before it starts a new one",
    { timeout: 60_000 },
    async () => {
      const dataDir = temporaryDataDir();
      const first = await start({ dataDir });
      await query(first.url, 'CREATE TABLE kept AS SELECT 7 AS answer');
      // This process stands for the killed parent: it forgets its child and starts anew.
      const second = await start({ dataDir, port: first.port });
      expect(second.pid).not.toBe(first.pid);
      expect(readProcess(first.pid)).toBeNull();
      expect(await first.exited).toEqual({ code: 0, signal: null });
      expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 7 }]);
    },
  );

  it('ends the Postgres of a killed parent even when the pid file is lost too', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    const first = await start({ dataDir });
    rmSync(join(dataDir, 'run'), { recursive: true });
    const second = await start({ dataDir, port: first.port });
    expect(readProcess(first.pid)).toBeNull();
    expect(await query(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('leaves a process alone that only inherited the number in the pid file', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    cleanups.push(() => void stranger.kill('SIGKILL'));
    const pid = stranger.pid ?? 0;
    mkdirSync(join(dataDir, 'run'));
    const startedAt = readProcess(pid)?.startedAt;
    const record = { pid, startedAt, args: ['-D', join(dataDir, 'postgres')], stopSignal: 'SIGINT' };
    writeFileSync(join(dataDir, 'run', 'postgres.pid'), JSON.stringify(record));
    expect(await endStaleChildren(dataDir)).toEqual([]);
    expect(readProcess(pid)).not.toBeNull();
    expect(existsSync(join(dataDir, 'run', 'postgres.pid'))).toBe(false);
  });

  it('sets a new password when the file with the old one is lost', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    const first = await start({ dataDir });
    await query(first.url, 'CREATE TABLE kept AS SELECT 1 AS answer');
    await first.stop();
    rmSync(join(dataDir, 'postgres-password'));
    const second = await start({ dataDir });
    expect(new URL(second.url).password).not.toBe(new URL(first.url).password);
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 1 }]);
  });

  it('begins anew after a start that was killed while it created the cluster', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    mkdirSync(join(dataDir, 'postgres.new-abandoned', 'cluster'), { recursive: true });
    const { url } = await start({ dataDir });
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(readdirSync(dataDir).filter((name) => name.startsWith('postgres.new-'))).toEqual([]);
  });

  it('shows the end of the log when Postgres ends while it starts', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    const first = await start({ dataDir });
    await first.stop();
    writeFileSync(join(dataDir, 'postgres', 'postgresql.auto.conf'), 'no_such_setting = 1\n');
    await expect(start({ dataDir })).rejects.toThrow(/ended while it started.*no_such_setting/s);
  });

  it('refuses the data of another major version, and says so', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    mkdirSync(join(dataDir, 'postgres'));
    writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '15\n');
    await expect(start({ dataDir })).rejects.toThrow(/was written by Postgres 15, and this is Postgres 18/);
  });
});

function copyWithoutLinks(parent: string): string {
  const copy = join(parent, 'package');
  cpSync(postgresPackageDir(), copy, { recursive: true, verbatimSymlinks: true });
  const links = JSON.parse(readFileSync(join(copy, 'native', 'pg-symlinks.json'), 'utf8')) as { target: string }[];
  expect(links.length).toBeGreaterThan(0);
  for (const { target } of links) unlinkSync(join(copy, target));
  return copy;
}

describe('the binaries of embedded Postgres', () => {
  it('run again once the library links that an install left out are made', { timeout: 60_000 }, async () => {
    const copy = copyWithoutLinks(temporaryDataDir());
    const user = await choosePostgresUser('/nowhere');
    const run = () =>
      runCommand(join(copy, 'native', 'bin', 'postgres'), ['--version'], { env: postgresEnv, ...asUser(user) });
    expect((await run()).code).not.toBe(0);
    repairLibraryLinks(copy);
    expect(await run()).toMatchObject({ code: 0, output: expect.stringContaining('PostgreSQL') as string });
    repairLibraryLinks(copy);
  });

  it.runIf(process.getuid?.() === 0)(
    "are copied to where Postgres's user can run them when the package lies in a closed home",
    { timeout: 60_000 },
    async () => {
      const dataDir = temporaryDataDir();
      const closed = join(dataDir, 'closed');
      mkdirSync(closed, { mode: 0o700 });
      const packageDir = copyWithoutLinks(closed);
      const user = await choosePostgresUser('/nowhere');
      const { postgres } = await preparePostgresBinaries(dataDir, user, silentProgress, packageDir);
      expect(postgres.startsWith(join(dataDir, 'postgres-binaries-'))).toBe(true);
      expect(await preparePostgresBinaries(dataDir, user, silentProgress, packageDir)).toMatchObject({ postgres });
    },
  );
});

describe.runIf(process.getuid?.() === 0)('embedded Postgres started by root', () => {
  it(
    'works in a data directory below a closed home, opens nothing, and finds its data again',
    { timeout: 120_000 },
    async () => {
      const home = temporaryDataDir();
      chmodSync(home, 0o700);
      const dataDir = join(home, '.posthorn');
      const first = await start({ dataDir });
      const location = JSON.parse(readFileSync(join(dataDir, 'postgres-location.json'), 'utf8')) as {
        directory: string;
      };
      cleanups.push(() => rmSync(location.directory, { recursive: true, force: true }));
      await query(first.url, 'CREATE TABLE kept AS SELECT 1 AS answer');
      await first.stop();
      expect(statSync(home).mode & 0o777).toBe(0o700);
      expect(existsSync(join(location.directory, 'postgres', 'PG_VERSION'))).toBe(true);
      const second = await start({ dataDir });
      expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 1 }]);
    },
  );
});
