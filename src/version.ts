import { existsSync, readFileSync } from 'node:fs';

/** From package.json. Looks upwards, because a compiled file lies one folder deeper than its source. */
export const version: string = findVersion();

function findVersion(): string {
  for (let folder = new URL('.', import.meta.url); ; folder = new URL('..', folder)) {
    const file = new URL('package.json', folder);
    if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
    if (folder.pathname === '/') throw new Error('package.json of Posthorn was not found above its code');
  }
}
