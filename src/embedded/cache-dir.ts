import { join, resolve } from 'node:path';
import { canBeWritten } from './data-dir.js';

/** Where fetched programs are kept for every clone of this user; without a home, in the data directory. */
export function cacheDirectory(env: NodeJS.ProcessEnv, dataDir: string): string {
  const places = [
    ...(env['XDG_CACHE_HOME'] ? [join(resolve(env['XDG_CACHE_HOME']), 'posthorn')] : []),
    ...(env['HOME'] ? [join(resolve(env['HOME']), '.cache', 'posthorn')] : []),
  ];
  // A service's user often has a home that doesn't exist or is closed.
  return places.find(canBeWritten) ?? join(resolve(dataDir), 'cache');
}
