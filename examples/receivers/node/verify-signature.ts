/**
 * Verifies the signature of a webhook from Posthorn, in either format. Copy this file: it needs nothing but Node.
 *
 * `default`:           Webhook-Signature: t=<unix seconds>,v1=<hexadecimal>[,v1=…]
 *                      over `<t>.<body>`; the key is the secret's whole text, `whsec_` included
 * Standard Webhooks:   Webhook-Signature: v1,<base64>[ v1,…], with Webhook-Id and Webhook-Timestamp
 *                      over `<id>.<timestamp>.<body>`; the key is the base64 after `whsec_`, decoded
 *
 * Both are HMAC-SHA256. While a secret is being rotated there is one `v1` for each live secret: any match is enough.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** How far the timestamp may be from this machine's clock: it bounds for how long a recorded request can be replayed. */
export const defaultToleranceSeconds = 300;

export type Verification =
  | { readonly ok: true; readonly timestamp: number }
  | { readonly ok: false; readonly reason: 'header_missing' | 'header_malformed' | 'timestamp_skew' | 'no_match' };

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyInput {
  /** The body's bytes as they arrived. Parsing and serialising again changes them, and no signature matches then. */
  readonly body: Uint8Array;
  /** By lower-case name, as `request.headers` is. */
  readonly headers: Headers;
  /** The secrets you accept: two of them while you rotate, else one. */
  readonly secrets: readonly string[];
  readonly nowMs?: number;
  readonly toleranceSeconds?: number;
}

/** What a request claims; whether it is true takes a secret to say. */
interface Claim {
  readonly timestamp: string;
  readonly signedPrefix: string;
  readonly signatures: readonly string[];
  readonly encoding: 'hex' | 'base64';
  readonly keyOf: (secret: string) => Buffer;
}

export function verifySignature(input: VerifyInput): Verification {
  const { body, headers, secrets, nowMs = Date.now(), toleranceSeconds = defaultToleranceSeconds } = input;
  const header = textOf(headers, 'webhook-signature');
  if (header === '') return { ok: false, reason: 'header_missing' };
  const claim = header.startsWith('t=') ? readDefault(header) : readStandard(header, headers);
  if (!/^[0-9]{1,12}$/.test(claim.timestamp) || claim.signatures.length === 0) {
    return { ok: false, reason: 'header_malformed' };
  }
  const timestamp = Number(claim.timestamp);
  if (Math.abs(Math.floor(nowMs / 1_000) - timestamp) > toleranceSeconds) {
    return { ok: false, reason: 'timestamp_skew' };
  }

  let matches = false;
  for (const secret of secrets) {
    const key = claim.keyOf(secret);
    if (key.length === 0) continue; // Anybody can sign with an empty key.
    const expected = createHmac('sha256', key).update(claim.signedPrefix).update(body).digest(claim.encoding);
    for (const signature of claim.signatures) {
      // In constant time, so that the answer's delay tells nothing about the right value. Both have the same length.
      if (timingSafeEqual(Buffer.from(expected), Buffer.from(signature))) matches = true;
    }
  }
  return matches ? { ok: true, timestamp } : { ok: false, reason: 'no_match' };
}

function readDefault(header: string): Claim {
  const parts = header.split(',').map((part) => part.trim());
  // Other names belong to schemes to come, and are skipped.
  const valuesOf = (name: string) =>
    parts.filter((part) => part.startsWith(name)).map((part) => part.slice(name.length));
  const timestamp = valuesOf('t=')[0] ?? '';
  return {
    timestamp,
    signedPrefix: `${timestamp}.`,
    signatures: valuesOf('v1=').filter((value) => /^[0-9a-f]{64}$/.test(value)),
    encoding: 'hex',
    keyOf: (secret) => Buffer.from(secret, 'utf8'),
  };
}

function readStandard(header: string, headers: Headers): Claim {
  const id = textOf(headers, 'webhook-id');
  const timestamp = textOf(headers, 'webhook-timestamp');
  const values = header.split(' ').filter((part) => part.startsWith('v1,'));
  return {
    timestamp: id === '' ? '' : timestamp,
    signedPrefix: `${id}.${timestamp}.`,
    signatures: values.map((value) => value.slice('v1,'.length)).filter((value) => /^[A-Za-z0-9+/]{43}=$/.test(value)),
    encoding: 'base64',
    keyOf: (secret) => {
      const text = secret.replace(/^whsec_/, '');
      return Buffer.from(/^[A-Za-z0-9+/]+={0,2}$/.test(text) ? text : '', 'base64');
    },
  };
}

function textOf(headers: Headers, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value.trim() : '';
}
