import { createHmac, sign } from 'node:crypto';
import type { SignatureName } from '../domain/profiles.js';
import {
  signatureHeader,
  signatureHeaderName,
  signedContentPrefix,
  standardSignatureHeader,
  standardSignedContentPrefix,
  timestampHeaderName,
} from '../domain/signing.js';
import { readSigningKey } from '../security/signing-key.js';
import { decodeSecret } from '../security/signing-secret.js';

export interface SignedMessage {
  readonly messageId: string;
  readonly body: Buffer;
  /** The endpoint's active secrets in clear; the order of the signatures is theirs. */
  readonly secrets: readonly string[];
  readonly unixSeconds: number;
}

/** The endpoint's secrets can't sign. The message holds nothing of them. */
export class UnusableSecretError extends Error {
  override readonly name = 'UnusableSecretError';
}

/**
 * The headers by which a consumer verifies the body; `Webhook-Id` is the caller's.
 * @throws {UnusableSecretError}
 */
export function signatureHeaders(name: SignatureName, message: SignedMessage): Record<string, string> {
  const { messageId, body, secrets, unixSeconds } = message;
  if (secrets.length === 0) throw new UnusableSecretError('The endpoint has no secret');
  switch (name) {
    case 'default':
      return { [signatureHeaderName]: signBody(body, secrets, unixSeconds) };
    case 'standard_webhooks':
      return {
        [timestampHeaderName]: String(unixSeconds),
        [signatureHeaderName]: signStandard(messageId, body, secrets, unixSeconds),
      };
    case 'standard_webhooks_ed25519':
      return {
        [timestampHeaderName]: String(unixSeconds),
        [signatureHeaderName]: signEd25519(messageId, body, secrets, unixSeconds),
      };
  }
}

/**
 * The `Webhook-Signature` header of the `default` signature: HMAC-SHA256, one per active secret. The key is the secret's text as
 * its owner sees it, `whsec_` included, which is what widely used verifiers expect.
 * @throws {UnusableSecretError}
 */
export function signBody(body: Buffer, secrets: readonly string[], unixSeconds: number): string {
  const prefix = signedContentPrefix(unixSeconds);
  const signatures = secrets.map((secret) => {
    if (secret === '') throw new UnusableSecretError('A secret of the endpoint is empty');
    return hmac(Buffer.from(secret, 'utf8'), prefix, body).toString('hex');
  });
  return signatureHeader(unixSeconds, signatures);
}

function signStandard(messageId: string, body: Buffer, secrets: readonly string[], unixSeconds: number): string {
  const prefix = standardSignedContentPrefix(messageId, unixSeconds);
  const signatures = secrets.map((secret) => {
    const key = decodeSecret(secret);
    if (key === null)
      throw new UnusableSecretError('A secret of the endpoint is not whsec_ and base64 of 32 – 64 bytes');
    return hmac(key, prefix, body).toString('base64');
  });
  return standardSignatureHeader(signatures);
}

function signEd25519(messageId: string, body: Buffer, secrets: readonly string[], unixSeconds: number): string {
  const content = Buffer.concat([Buffer.from(standardSignedContentPrefix(messageId, unixSeconds), 'utf8'), body]);
  const signatures = secrets.map((secret) => {
    const read = readSigningKey(secret);
    if (read === null) throw new UnusableSecretError('A key of the endpoint is not whsk_ and base64 of 64 bytes');
    return sign(null, content, read.key).toString('base64');
  });
  return standardSignatureHeader(signatures, 'v1a');
}

function hmac(key: Buffer, prefix: string, body: Buffer): Buffer {
  return createHmac('sha256', key).update(prefix).update(body).digest();
}
