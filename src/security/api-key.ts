import { hash, randomBytes } from 'node:crypto';

/** A new API key. It is shown once; only its hash is kept. */
export function generateApiKey(): string {
  return `phk_${randomBytes(32).toString('base64url')}`;
}

/** SHA-256 of the key. A fast hash is enough: unlike a password, a key holds 256 random bits. */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}
