import { randomBytes } from 'node:crypto';

/** A new signing secret of an endpoint: `whsec_` and base64 of 32 random bytes. */
export function generateSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}
