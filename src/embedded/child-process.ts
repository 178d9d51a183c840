import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ensureDataDir, ensurePrivateDir } from './data-dir.js';
import { type ProcessIdentity, readProcess, waitForProcessEnd } from './process-identity.js';

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ChildOptions {
  /** Names the log and the pid file. */
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly dataDir: string;
  /** Replaces `plainEnv`. */
  readonly env?: NodeJS.ProcessEnv;
  /** Run as this user: only root can. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** The polite request to end. */
  readonly stopSignal?: 'SIGTERM' | 'SIGINT';
}

export interface EmbeddedChild {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Settles when the process has ended, for whatever reason; never rejects. */
  readonly exited: Promise<ChildExit>;
  isRunning(): boolean;
  /** Asks politely, then kills after `graceMs`; 0 kills at once. May be called again to hurry. */
  stop(options: { readonly graceMs: number }): Promise<ChildExit>;
  /** The last lines of its log, for an error message. */
  logTail(): string;
}

interface PidFile {
  readonly pid: number;
  readonly startedAt: string;
  readonly args: readonly string[];
  readonly stopSignal: NodeJS.Signals;
}

/** A child that was ended by an earlier parent's death is given this long to stop by itself. */
const STALE_GRACE_MS = 15_000;
const KILL_WAIT_MS = 10_000;

/** What any program may need to know of its surroundings. The rest of ours holds keys and passwords, and settings for others. */
const plainNames = ['PATH', 'HOME', 'USER', 'LOGNAME', 'TMPDIR', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ'];

export function plainEnv(env: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return Object.fromEntries(plainNames.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

const pidFileOf = (dataDir: string, name: string): string => join(ensurePrivateDir(dataDir, 'run'), `${name}.pid`);

/**
 * Starts a child in a process group of its own, so that a terminal's Ctrl-C reaches us alone and we end it in order.
 * A stale child of the same name, left by a killed parent, is ended first.
 */
export async function startChild(options: ChildOptions): Promise<EmbeddedChild> {
  const { name, args, stopSignal = 'SIGTERM' } = options;
  const dataDir = ensureDataDir(options.dataDir);
  await endStaleChild(dataDir, name);
  const pidFile = pidFileOf(dataDir, name);
  const logFile = join(ensurePrivateDir(dataDir, 'logs'), `${name}.log`);
  keepPreviousLog(logFile);

  const log = openSync(logFile, 'a', 0o600);
  const child = withPrivateUmask(() =>
    spawn(options.file, [...args], {
      detached: true,
      // A child must not hold the directory that we happened to be started in.
      cwd: '/',
      stdio: ['ignore', log, log],
      env: options.env ?? plainEnv(),
      ...options.user,
    }),
  );
  closeSync(log);
  const { pid } = child;
  if (pid !== undefined) {
    const startedAt = readProcess(pid)?.startedAt ?? '';
    writeFileSync(pidFile, JSON.stringify({ pid, startedAt, args, stopSignal } satisfies PidFile), { mode: 0o600 });
  }
  let running = pid !== undefined;
  const exited = new Promise<ChildExit>((resolve) => {
    child.once('exit', (code, signal) => {
      running = false;
      if (readPidFile(pidFile)?.pid === pid) rmSync(pidFile, { force: true });
      resolve({ code, signal });
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => {
      reject(new Error(`${options.file} could not be started: ${error.message}`, { cause: error }));
    });
  });
  if (pid === undefined) throw new Error(`${options.file} could not be started`);

  return {
    name,
    pid,
    logFile,
    exited,
    isRunning: () => running,
    async stop({ graceMs }) {
      if (running && graceMs > 0) {
        signalGroup(pid, stopSignal);
        await Promise.race([exited, cancellableDelay(graceMs, exited)]);
      }
      if (running) signalGroup(pid, 'SIGKILL');
      return exited;
    },
    logTail: () => tail(logFile),
  };
}

/** Ends what an earlier, killed parent left running under this name. Answers whether there was something. */
export async function endStaleChild(dataDir: string, name: string): Promise<boolean> {
  const pidFile = pidFileOf(dataDir, name);
  const stale = readPidFile(pidFile);
  const ended = stale !== null && (await endIfOurs(stale));
  rmSync(pidFile, { force: true });
  return ended;
}

/** Ends all stale children of the data directory, so that they don't sit on the ports; answers their names. */
export async function endStaleChildren(directory: string): Promise<readonly string[]> {
  const dataDir = ensureDataDir(directory);
  ensurePrivateDir(dataDir, 'run');
  const ended = await Promise.all(
    childNames(dataDir).map(async (name) => ((await endStaleChild(dataDir, name)) ? [name] : [])),
  );
  return ended.flat();
}

/** Children of the data directory that run; where no Posthorn does, a killed one left them. Changes nothing. */
export function findStaleChildren(directory: string): readonly string[] {
  return childNames(directory).filter((name) => {
    const found = readPidFile(pidFileOf(directory, name));
    return found !== null && isOurs(found) !== null;
  });
}

/** The child inherits it, so that what it writes is for nobody else to read. */
function withPrivateUmask<T>(work: () => T): T {
  const before = process.umask(0o077);
  try {
    return work();
  } finally {
    process.umask(before);
  }
}

function childNames(dataDir: string): string[] {
  const directory = join(dataDir, 'run');
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((file) => file.endsWith('.pid'))
    .map((file) => basename(file, '.pid'));
}

/** A number in a file proves nothing: the process must have the recorded start time and arguments. */
function isOurs({ pid, startedAt, args }: PidFile): ProcessIdentity | null {
  const found = readProcess(pid);
  return found !== null && found.startedAt === startedAt && found.command.endsWith(args.join(' ')) ? found : null;
}

async function endIfOurs(file: PidFile): Promise<boolean> {
  const { pid, stopSignal } = file;
  const found = isOurs(file);
  if (found === null) return false;
  signalGroup(pid, stopSignal);
  if (await waitForProcessEnd(pid, found, STALE_GRACE_MS)) return true;
  signalGroup(pid, 'SIGKILL');
  return waitForProcessEnd(pid, found, KILL_WAIT_MS);
}

function readPidFile(path: string): PidFile | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as PidFile;
  } catch {
    return null;
  }
}

/** The group, since a wrapper script may have started the real process below itself. */
function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A delay that doesn't keep the process alive once the other promise has settled. */
function cancellableDelay(ms: number, until: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void until.then(() => clearTimeout(timer));
  });
}

/** One earlier log is kept: it tells why the last run ended. */
function keepPreviousLog(logFile: string): void {
  try {
    renameSync(logFile, `${logFile}.1`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function tail(logFile: string, lines = 12): string {
  try {
    return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  } catch {
    return '';
  }
}
