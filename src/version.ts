import { readFileSync } from 'node:fs';

/** From package.json, which lies one or two folders up: beside the sources, or beside dist. */
export const version: string = findVersion();

function findVersion(): string {
  for (const up of ['../package.json', '../../package.json']) {
    try {
      const text = readFileSync(new URL(up, import.meta.url), 'utf8');
      return (JSON.parse(text) as { version: string }).version;
    } catch {
      continue;
    }
  }
  return '0.0.0';
}
