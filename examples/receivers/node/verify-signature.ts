/**
 * Verifies the `Webhook-Signature` header of a delivery. Copy this file: it needs nothing but Node.
 *
 *     Webhook-Signature: t=1769860800,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd
 *
 * `v1` is the HMAC-SHA256, in hexadecimal, of `<t>.<raw body>`, keyed with the secret's whole text, `whsec_` included. While a
 * secret is being rotated the header has one `v1` for each secret that is active: any one that matches is enough.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** How far `t` may be from this machine's clock. It bounds for how long a recorded request could be replayed. */
export const defaultToleranceSeconds = 300;

export type Verification =
  | { readonly ok: true; readonly timestamp: number }
  | { readonly ok: false; readonly reason: 'header_missing' | 'header_malformed' | 'timestamp_skew' | 'no_match' };

export interface VerifyInput {
  /** The body's bytes as they arrived. Parsing and serialising again changes them, and no signature matches then. */
  readonly body: Buffer;
  /** The value of `Webhook-Signature`. */
  readonly header: string | undefined;
  /** The secrets you accept: two of them while you rotate, else one. */
  readonly secrets: readonly string[];
  readonly nowMs?: number;
  readonly toleranceSeconds?: number;
}

export function verifySignature(input: VerifyInput): Verification {
  const { body, header, secrets, nowMs = Date.now(), toleranceSeconds = defaultToleranceSeconds } = input;
  if (!header) return { ok: false, reason: 'header_missing' };

  let timestamp: string | undefined;
  const candidates: Buffer[] = [];
  for (const part of header.split(',')) {
    const [name, value = ''] = part.trim().split('=');
    if (name === 't' && /^\d{1,12}$/.test(value)) timestamp ??= value;
    if (name === 'v1' && /^[0-9a-f]{64}$/i.test(value)) candidates.push(Buffer.from(value, 'hex'));
    // Other names belong to schemes to come, and are skipped.
  }
  if (timestamp === undefined || candidates.length === 0) return { ok: false, reason: 'header_malformed' };
  if (Math.abs(Math.floor(nowMs / 1_000) - Number(timestamp)) > toleranceSeconds) {
    return { ok: false, reason: 'timestamp_skew' };
  }

  let matches = false;
  for (const secret of secrets) {
    if (secret === '') continue; // Anybody can sign with an empty key.
    const expected = createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest();
    for (const candidate of candidates) {
      // Compares in constant time, so that the answer's delay tells nothing about the right value.
      if (timingSafeEqual(expected, candidate)) matches = true;
    }
  }
  return matches ? { ok: true, timestamp: Number(timestamp) } : { ok: false, reason: 'no_match' };
}
