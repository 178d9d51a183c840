import { pingDatabase } from '../database/ping.js';
import { type ChildExit, endStaleChild, startChild, type EmbeddedChild } from './child-process.js';
import { ensureDataDir } from './data-dir.js';
import { preparePostgresBinaries } from './postgres/postgres-binaries.js';
import {
  createCluster,
  DATABASE_NAME,
  DATABASE_USER,
  isInitialised,
  openCluster,
} from './postgres/postgres-cluster.js';
import { clusterDirOf } from './postgres/postgres-cluster.js';
import { choosePostgresHome, recordedPostgresHome } from './postgres/postgres-home.js';
import { asUser, choosePostgresUser, postgresEnv } from './postgres/postgres-user.js';
import { type Progress, withProgress } from './progress.js';

export interface EmbeddedPostgresOptions {
  readonly dataDir: string;
  readonly port: number;
  readonly progress: Progress;
  /** Server settings beside or instead of ours; tests trade durability for speed with them. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres {
  /** With user, password and the database `posthorn`. */
  readonly url: string;
  readonly pid: number;
  readonly exited: Promise<ChildExit>;
  /** Fast shutdown: open transactions are rolled back. Killed after `graceMs`, 0 kills at once. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
}

const CHILD_NAME = 'postgres';
const STOP_GRACE_MS = 20_000;
/** After a crash it reads its log before it answers. */
const START_TIMEOUT_MS = 120_000;
/** The backends of a killed postmaster hold its shared memory until they notice. */
const ORPHANS_WAIT_MS = 15_000;

const defaultSettings = {
  listen_addresses: '127.0.0.1',
  // A socket file's path may be too long or its folder closed; loopback is enough.
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '128MB',
  fsync: 'on',
  synchronous_commit: 'on',
  timezone: 'UTC',
  log_timezone: 'UTC',
};

/**
 * Starts Postgres on loopback, creating its cluster and database on the first start and recovering after a crash.
 * @throws when it can't run here, with what to do; with the end of its log when it doesn't come up.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { port, progress } = options;
  const dataDir = ensureDataDir(options.dataDir);
  await endStaleChild(dataDir, CHILD_NAME);
  const user = await choosePostgresUser(clusterDirOf(recordedPostgresHome(dataDir) ?? dataDir));
  const home = await choosePostgresHome(dataDir, user, progress);
  const binaries = await preparePostgresBinaries(home, user, progress);
  const place = { dataDir, home, binaries, user };
  const cluster = isInitialised(home)
    ? await openCluster(place)
    : await withProgress(progress, 'Creating the Postgres data directory', () => createCluster(place));

  const settings = Object.entries({ ...defaultSettings, ...options.settings });
  const args = [
    '-D',
    cluster.directory,
    '-p',
    String(port),
    ...settings.flatMap(([key, value]) => ['-c', `${key}=${value}`]),
  ];
  const url = `postgres://${DATABASE_USER}:${cluster.password}@127.0.0.1:${port}/${DATABASE_NAME}`;
  const child = await withProgress(progress, `Starting Postgres on port ${port}`, () =>
    startUntilItAnswers(url, () =>
      startChild({
        name: CHILD_NAME,
        file: binaries.postgres,
        args,
        dataDir,
        env: postgresEnv,
        stopSignal: 'SIGINT',
        ...asUser(user),
      }),
    ),
  );
  return {
    url,
    pid: child.pid,
    exited: child.exited,
    async stop({ graceMs = STOP_GRACE_MS } = {}) {
      await child.stop({ graceMs });
    },
  };
}

async function startUntilItAnswers(url: string, start: () => Promise<EmbeddedChild>): Promise<EmbeddedChild> {
  const startedAt = Date.now();
  for (;;) {
    const child = await start();
    if (await waitUntilItAnswers(url, child, startedAt + START_TIMEOUT_MS)) return child;
    if (child.isRunning()) {
      await child.stop({ graceMs: STOP_GRACE_MS });
      throw new Error(
        `Postgres did not answer within ${START_TIMEOUT_MS / 1000} s. Its log ends with:\n${child.logTail()}`,
      );
    }
    // The log is shown as it is: an early end has many causes, and orphans are the one that goes away by itself.
    if (Date.now() - startedAt > ORPHANS_WAIT_MS || !mayBeOrphans(child.logTail())) {
      throw new Error(`Postgres ended while it started. Its log (${child.logFile}) ends with:\n${child.logTail()}`);
    }
    await delay(500);
  }
}

/** Only an ended wait depends on this text: when it doesn't match any more, the error is shown at once. */
const mayBeOrphans = (log: string): boolean => /shared memory block/.test(log);

async function waitUntilItAnswers(url: string, child: EmbeddedChild, deadline: number): Promise<boolean> {
  while (child.isRunning() && Date.now() < deadline) {
    try {
      await pingDatabase(url, 5_000);
      // An answer on this port proves nothing when our own process is gone.
      if (child.isRunning()) return true;
    } catch {
      await delay(50);
    }
  }
  return false;
}

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
