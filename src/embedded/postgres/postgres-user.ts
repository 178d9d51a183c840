import { statSync } from 'node:fs';
import { runCommand } from '../run-command.js';

/** Null: the current user runs Postgres. */
export type PostgresUser = { readonly uid: number; readonly gid: number; readonly name: string } | null;

/** No variable of ours may steer Postgres (PGDATA, LC_ALL, TZ); it needs none. */
export const postgresEnv: NodeJS.ProcessEnv = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/local/bin:/usr/bin:/bin' };

export const asUser = (user: PostgresUser) => (user ? { user: { uid: user.uid, gid: user.gid } } : {});

/**
 * Postgres refuses to run as root. Root lends it `postgres` where that user exists, else `nobody`: no user is created
 * on somebody's machine. A cluster that exists keeps its owner.
 */
export async function choosePostgresUser(clusterDir: string): Promise<PostgresUser> {
  if (process.getuid?.() !== 0) return null;
  const owner = ownerOf(clusterDir);
  if (owner !== null && owner.uid !== 0) {
    const name = (await runCommand('id', ['-un', String(owner.uid)])).stdout.trim();
    return { ...owner, name: name || String(owner.uid) };
  }
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => runCommand('id', [flag, name])));
    if (uid?.code === 0 && gid?.code === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout), name };
  }
  throw new Error(
    "Postgres can't run as root, and this machine has neither a user 'postgres' nor 'nobody' to run it as. " +
      'Start Posthorn as an ordinary user, or set POSTHORN_DATABASE_URL to a Postgres of your own.',
  );
}

function ownerOf(path: string): { uid: number; gid: number } | null {
  try {
    const { uid, gid } = statSync(path);
    return { uid, gid };
  } catch {
    return null;
  }
}

/** Asks the kernel, as that user: modes, access lists and mount options all count. */
export async function canEnter(directory: string, user: PostgresUser): Promise<boolean> {
  const script = 'test -d "$0" && test -x "$0"';
  const { code } = await runCommand('/bin/sh', ['-c', script, directory], { env: postgresEnv, ...asUser(user) });
  return code === 0;
}
