import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type EncryptionKey, parseKeyRing } from '../config/key-ring.js';

/** The embedded default makes its own key ring, once, beside the data that it protects from prying eyes in dumps and logs. */
export function embeddedKeyRing(dataDir: string): readonly [EncryptionKey, ...EncryptionKey[]] {
  const path = join(dataDir, 'encryption-keys');
  if (!existsSync(path)) writePrivate(path, `k1:${randomBytes(32).toString('base64')}`);
  return parseKeyRing(readFileSync(path, 'utf8').trim());
}

/** Where the embedded default keeps its service key, for curl and the demo. */
export const apiKeyFile = (dataDir: string): string => join(dataDir, 'api-key');

export function writePrivate(path: string, text: string): void {
  writeFileSync(path, `${text}\n`, { mode: 0o600 });
}
