import { accessSync, chmodSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** Makes the data directory where it is missing, and answers its absolute path. */
export function ensureDataDir(dataDir: string): string {
  const path = resolve(dataDir);
  if (!existsSync(path)) {
    mkdirSync(path, { recursive: true });
    // Started by root, Postgres runs as another user who must be able to pass through, but not to look around.
    chmodSync(path, process.getuid?.() === 0 ? 0o711 : 0o700);
  }
  return path;
}

/** A folder of ours in the data directory that nobody else may read. */
export function ensurePrivateDir(dataDir: string, name: string): string {
  const path = join(dataDir, name);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}

/** The path itself, or the nearest directory above it that exists. */
export function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));
}

/** Whether this user may write in the directory, or make it; nothing is made. */
export function canBeWritten(path: string): boolean {
  try {
    accessSync(nearestExisting(path), constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
