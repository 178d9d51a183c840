import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureDataDir } from './data-dir.js';
import { readProcess } from './process-identity.js';

const LOCK_FILE = 'posthorn.lock';

/** Another process works in this data directory. */
export class DataDirInUseError extends Error {
  override readonly name = 'DataDirInUseError';
  constructor(
    readonly dataDir: string,
    readonly pid: number,
  ) {
    super(
      `Posthorn is already running in ${dataDir} (process ${pid}). Stop it first (Ctrl-C, or kill ${pid}), ` +
        'or start this one with another POSTHORN_DATA_DIR and other ports.',
    );
  }
}

export interface DataDirLock {
  release(): void;
}

interface Holder {
  readonly pid: number;
  readonly startedAt: string;
  readonly command: string;
}

/** The live process that holds the data directory, if there is one. */
export function findDataDirHolder(dataDir: string): number | null {
  return liveHolder(read(join(dataDir, LOCK_FILE)));
}

/**
 * Takes the data directory for this process; a lock left by a killed process is taken over.
 * @throws {DataDirInUseError} when another live process holds it.
 */
export function lockDataDir(directory: string): DataDirLock {
  const dataDir = ensureDataDir(directory);
  const lockFile = join(dataDir, LOCK_FILE);
  const own = readProcess(process.pid) ?? { startedAt: '', command: '' };
  const token = randomBytes(6).toString('hex');
  const ours = JSON.stringify({ pid: process.pid, ...own, token });
  const draft = `${lockFile}.${token}`;
  writeFileSync(draft, ours, { mode: 0o600 });
  try {
    // Linking a finished file is atomic, and nobody reads a half-written lock.
    while (!tryLink(draft, lockFile)) {
      const found = read(lockFile);
      const pid = liveHolder(found);
      if (pid !== null) throw new DataDirInUseError(dataDir, pid);
      setAside(lockFile, found, `${draft}.stale`);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return {
    release() {
      if (read(lockFile) === ours) rmSync(lockFile, { force: true });
    },
  };
}

/** Removes a stale lock; when another starter was faster and the file is its new lock, puts it back. */
function setAside(lockFile: string, stale: string | null, aside: string): void {
  try {
    renameSync(lockFile, aside);
  } catch {
    return;
  }
  if (read(aside) !== stale) tryLink(aside, lockFile);
  rmSync(aside, { force: true });
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function liveHolder(text: string | null): number | null {
  if (text === null) return null;
  try {
    const holder = JSON.parse(text) as Holder;
    const running = readProcess(holder.pid);
    const same = running?.startedAt === holder.startedAt && running.command === holder.command;
    return same ? holder.pid : null;
  } catch {
    return null;
  }
}
