import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { canBeWritten, nearestExisting } from '../data-dir.js';
import { findDataDirHolder } from '../data-dir-lock.js';
import { postgresPackageDir, postgresPackageVersion, tryBinaries } from '../postgres/postgres-binaries.js';
import { clusterDirOf } from '../postgres/postgres-cluster.js';
import { recordedPostgresHome } from '../postgres/postgres-home.js';
import { canEnter, choosePostgresUser } from '../postgres/postgres-user.js';
import { type Finding, fail, ok } from './finding.js';

/** Looks without making anything: the directory may not exist before the first start. */
export function checkDataDir(dataDir: string): Finding {
  const path = resolve(dataDir);
  const todo = 'Make it writable for this user, or set POSTHORN_DATA_DIR to another place.';
  const existing = nearestExisting(path);
  if (!canBeWritten(path)) {
    return fail(
      `The data directory ${path} can't be written${existing === path ? '' : ` (${existing} is closed)`}`,
      todo,
    );
  }
  if (!statSync(existing).isDirectory()) return fail(`The data directory ${path} is no directory`, todo);
  if (existing !== path) return ok(`Data directory ${path} can be made at the first start`);
  const holder = findDataDirHolder(path);
  return ok(
    `Data directory ${path} can be written${holder === null ? '' : `; Posthorn runs in it (process ${holder})`}`,
  );
}

/** Whether the embedded Postgres runs here, and as whom. */
export async function checkEmbeddedPostgres(dataDir: string): Promise<Finding> {
  try {
    const path = resolve(dataDir);
    const home = recordedPostgresHome(path) ?? path;
    const packageDir = postgresPackageDir();
    const user = await choosePostgresUser(clusterDirOf(home));
    const version = `Embedded Postgres ${postgresPackageVersion(packageDir)}`;
    if (user === null) {
      const problem = await tryBinaries(packageDir, null);
      return problem === null ? ok(version) : fail(`${version} doesn't run: ${problem}`, useYourOwn);
    }
    const asOther = `${version}, run as '${user.name}' because root may not`;
    if (home !== path) return ok(`${asOther}; its data is in ${home}`);
    if (await canEnter(nearestExisting(path), user)) return ok(asOther);
    return ok(`${asOther}; its data will be elsewhere, since ${nearestExisting(path)} is closed to it`);
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error), useYourOwn);
  }
}

const useYourOwn = 'Or set POSTHORN_DATABASE_URL to a Postgres of your own.';
