import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import type { Progress } from '../progress.js';
import { canEnter, type PostgresUser } from './postgres-user.js';

const RECORD = 'postgres-location.json';

/** Where Postgres keeps its files: the data directory, or the place that an earlier start recorded in it. */
export function recordedPostgresHome(dataDir: string): string | null {
  try {
    return (JSON.parse(readFileSync(join(dataDir, RECORD), 'utf8')) as { directory: string }).directory;
  } catch {
    return null;
  }
}

/**
 * The directory for the cluster. A data directory that Postgres's user can't reach (root's home is closed to others)
 * keeps a record instead, of a place that this user can reach: nobody's home is opened for it.
 */
export async function choosePostgresHome(dataDir: string, user: PostgresUser, progress: Progress): Promise<string> {
  const recorded = recordedPostgresHome(dataDir);
  if (recorded !== null) {
    if (existsSync(recorded)) return recorded;
    throw new Error(
      `Postgres's data was in ${recorded}, which is gone. Bring it back, or remove ${dataDir} to begin anew.`,
    );
  }
  if (user === null || (await canEnter(dataDir, user))) return dataDir;
  for (const parent of fallbackParents(dataDir)) {
    const directory = makeOwnDirectory(parent);
    if (directory === null || !(await canEnter(directory, user))) continue;
    writeFileSync(join(dataDir, RECORD), JSON.stringify({ directory }), { mode: 0o600 });
    progress.note(`Postgres runs as '${user.name}', who can't reach ${dataDir}: its data is in ${directory}`);
    return directory;
  }
  throw new Error(
    `Postgres can't run as root, and '${user.name}', as whom it would run, can't reach ${dataDir}. ` +
      'Set POSTHORN_DATA_DIR to a directory whose parents everybody may enter (such as /srv/posthorn), ' +
      'start Posthorn as an ordinary user, or set POSTHORN_DATABASE_URL to a Postgres of your own.',
  );
}

/** What lives in the temporary directory may vanish with it; anything else must survive a reboot. */
function fallbackParents(dataDir: string): readonly string[] {
  const temporary = realpathSync(tmpdir());
  if (realpathSync(dataDir).startsWith(temporary + sep)) return [temporary];
  return ['/var/lib/posthorn', '/usr/local/var/posthorn', '/var/tmp'];
}

function makeOwnDirectory(parent: string): string | null {
  try {
    if (!existsSync(parent)) {
      mkdirSync(parent);
      chmodSync(parent, 0o711);
    }
    const { mode, uid } = lstatSync(parent);
    // A parent that others can write to is safe only with the sticky bit, or they could swap our directory.
    const sticky = (mode & 0o1000) !== 0;
    if (uid !== 0 || ((mode & 0o022) !== 0 && !sticky)) return null;
    const directory = mkdtempSync(join(parent, 'posthorn-postgres-'));
    chmodSync(directory, 0o711);
    return directory;
  } catch {
    return null;
  }
}
