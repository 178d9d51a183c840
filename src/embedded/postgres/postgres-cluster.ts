import { randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { lastLines, runCommand } from '../run-command.js';
import { readProcess, waitForProcessEnd } from '../process-identity.js';
import type { PostgresBinaries } from './postgres-binaries.js';
import { asUser, postgresEnv, type PostgresUser } from './postgres-user.js';

export const DATABASE_NAME = 'posthorn';
export const DATABASE_USER = 'posthorn';
const MAJOR_VERSION = '18';
const STALE_WAIT_MS = 15_000;

export interface Cluster {
  readonly directory: string;
  readonly password: string;
}

interface ClusterOptions {
  readonly dataDir: string;
  readonly home: string;
  readonly binaries: PostgresBinaries;
  readonly user: PostgresUser;
}

export const clusterDirOf = (home: string): string => join(home, 'postgres');
const passwordFileOf = (dataDir: string): string => join(dataDir, 'postgres-password');

export const isInitialised = (home: string): boolean => existsSync(join(clusterDirOf(home), 'PG_VERSION'));

/** Creates the cluster and its database under another name, so that a start that is killed leaves no half of one. */
export async function createCluster({ dataDir, home, binaries, user }: ClusterOptions): Promise<Cluster> {
  const directory = clusterDirOf(home);
  for (const entry of readdirSync(home)) {
    if (entry.startsWith('postgres.new-')) rmSync(join(home, entry), { recursive: true, force: true });
  }
  const draft = mkdtempSync(join(home, 'postgres.new-'));
  const newCluster = join(draft, 'cluster');
  const password = randomBytes(24).toString('base64url');
  const passwordFile = join(draft, 'password');
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (user) for (const path of [draft, passwordFile]) chownSync(path, user.uid, user.gid);

  const args = ['-D', newCluster, '-U', DATABASE_USER, '-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C'];
  const { code, output } = await runCommand(binaries.initdb, [...args, `--pwfile=${passwordFile}`], {
    env: postgresEnv,
    timeoutMs: 180_000,
    ...asUser(user),
  });
  if (code !== 0) {
    rmSync(draft, { recursive: true, force: true });
    throw new Error(`Postgres could not create its data directory in ${home}:\n${lastLines(output)}`);
  }
  await runSql(binaries, newCluster, user, `CREATE DATABASE ${DATABASE_NAME}`);
  writeFileSync(passwordFileOf(dataDir), `${password}\n`, { mode: 0o600 });
  renameSync(newCluster, directory);
  rmSync(draft, { recursive: true, force: true });
  return { directory, password };
}

/**
 * An existing cluster, ready to start.
 * @throws when another major version of Postgres wrote it.
 */
export async function openCluster({ dataDir, home, binaries, user }: ClusterOptions): Promise<Cluster> {
  const directory = clusterDirOf(home);
  const version = readFileSync(join(directory, 'PG_VERSION'), 'utf8').trim();
  if (version !== MAJOR_VERSION) {
    throw new Error(
      `${directory} was written by Postgres ${version}, and this is Postgres ${MAJOR_VERSION}. ` +
        'Move it away, or go back to the earlier version of Posthorn and dump it there.',
    );
  }
  await removeStalePostmaster(directory);
  const known = readPassword(dataDir);
  if (known !== null) return { directory, password: known };
  // The data outlives a lost password file: its owner may always set a new one.
  const password = randomBytes(24).toString('base64url');
  await runSql(binaries, directory, user, `ALTER USER ${DATABASE_USER} PASSWORD '${password}'`);
  writeFileSync(passwordFileOf(dataDir), `${password}\n`, { mode: 0o600 });
  return { directory, password };
}

function readPassword(dataDir: string): string | null {
  try {
    return readFileSync(passwordFileOf(dataDir), 'utf8').trim() || null;
  } catch {
    return null;
  }
}

/** Single-user mode: no socket and no password, and the statement is done when it ends. */
async function runSql(binaries: PostgresBinaries, directory: string, user: PostgresUser, sql: string): Promise<void> {
  const args = ['--single', '-D', directory, '-c', 'exit_on_error=on', 'postgres'];
  const { code, output } = await runCommand(binaries.postgres, args, {
    env: postgresEnv,
    input: `${sql}\n`,
    timeoutMs: 180_000,
    ...asUser(user),
  });
  if (code !== 0) throw new Error(`Postgres refused a statement while it was set up:\n${lastLines(output)}`);
}

/**
 * Postgres takes any living process with the recorded number, even a stranger or a zombie, for a postmaster and
 * refuses to start. So a real one of ours is ended, and a file that names somebody else is removed. A file that names
 * nobody is left to Postgres, which knows best how to recover.
 */
async function removeStalePostmaster(directory: string): Promise<void> {
  const file = join(directory, 'postmaster.pid');
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
  if (!Number.isSafeInteger(pid) || pid <= 0 || !isNumberTaken(pid)) return;
  const found = readProcess(pid);
  if (found !== null && found.command.includes(directory)) {
    process.kill(pid, 'SIGINT');
    if (!(await waitForProcessEnd(pid, found, STALE_WAIT_MS))) {
      process.kill(pid, 'SIGKILL');
      await waitForProcessEnd(pid, found, STALE_WAIT_MS);
    }
  }
  if (isNumberTaken(pid)) rmSync(file, { force: true });
}

function isNumberTaken(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
