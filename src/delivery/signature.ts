import { createHmac } from 'node:crypto';
import { signatureHeader, signedContentPrefix } from '../domain/signing.js';

/**
 * The `Webhook-Signature` header of a body: HMAC-SHA256, one per active secret. The key is the secret's text as its owner sees it,
 * `whsec_` included, which is what widely used verifiers expect.
 */
export function signBody(body: Buffer, secrets: readonly string[], unixSeconds: number): string {
  const signatures = secrets.map((secret) =>
    createHmac('sha256', Buffer.from(secret, 'utf8'))
      .update(signedContentPrefix(unixSeconds))
      .update(body)
      .digest('hex'),
  );
  return signatureHeader(unixSeconds, signatures);
}
