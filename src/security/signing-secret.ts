import { randomBytes } from 'node:crypto';
import { judgeSecret, minSecretBytes, secretPrefix } from '../domain/signing-secret.js';

/** A new signing secret of an endpoint: `whsec_` and base64 of 32 random bytes. */
export function generateSecret(): string {
  return secretPrefix + randomBytes(minSecretBytes).toString('base64');
}

/** The bytes after `whsec_`: the key of Standard Webhooks. Null for a text that is no proper secret. */
export function decodeSecret(text: string): Buffer | null {
  const judgement = judgeSecret(text);
  return judgement.ok ? Buffer.from(judgement.base64, 'base64') : null;
}
