import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { publicKeyPrefix, signingKeyPrefix } from '../domain/signing-secret.js';

const seedBytes = 32;
const publicBytes = 32;
export interface SigningKey {
  /** `whsk_` and base64 of the 32 bytes of the seed and the 32 of the public key: Standard Webhooks' form. */
  readonly secret: string;
  /** `whpk_` and base64 of 32 bytes. */
  readonly publicKey: string;
}

/** A new Ed25519 key pair. */
export function generateSigningKey(): SigningKey {
  const { privateKey } = generateKeyPairSync('ed25519');
  const jwk = privateKey.export({ format: 'jwk' });
  const seed = Buffer.from(jwk.d ?? '', 'base64url');
  const publicKey = Buffer.from(jwk.x ?? '', 'base64url');
  return {
    secret: signingKeyPrefix + Buffer.concat([seed, publicKey]).toString('base64'),
    publicKey: publicKeyPrefix + publicKey.toString('base64'),
  };
}

/** Null for a text that is no proper key. */
export function readSigningKey(text: string): { readonly key: KeyObject; readonly publicKey: string } | null {
  if (!text.startsWith(signingKeyPrefix)) return null;
  const base64 = text.slice(signingKeyPrefix.length);
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length !== seedBytes + publicBytes || bytes.toString('base64') !== base64) return null;
  const publicHalf = bytes.subarray(seedBytes);
  // As a JWK, since OpenSSL takes ten times as long to find out what a DER is.
  const d = bytes.subarray(0, seedBytes).toString('base64url');
  const x = publicHalf.toString('base64url');
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
  // Node doesn't compare them; by another public half nobody could verify.
  if (key.export({ format: 'jwk' }).x !== x) return null;
  return { key, publicKey: publicKeyPrefix + publicHalf.toString('base64') };
}
