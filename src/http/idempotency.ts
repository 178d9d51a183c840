import { createHash } from 'node:crypto';
import type { IdempotencyKey } from '../database/event-store.js';
import { Problem } from './problems/problem.js';

/** `same` and `other` say what tells a repeated request from another one. */
export const idempotencyHeader = (same: string, other: string) =>
  ({
    name: 'Idempotency-Key',
    required: false,
    description: `1 – 255 printable ASCII characters, kept for 24 h per tenant. The same key with the same ${same} gets the first answer again, with \`Idempotency-Replayed: true\`; with ${other} it is a 409.`,
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  }) as const;

export const replayedHeader = {
  'Idempotency-Replayed': {
    description: '`true`: the answer to an earlier request with the same key.',
    schema: { type: 'string' as const, example: 'true' },
  },
};

/**
 * A request with its key; `body` is what tells it from another one.
 * @throws Problem 422 where the key isn't printable ASCII.
 */
export function toIdempotencyKey(tenantId: string, key: string, body: Buffer | string): IdempotencyKey {
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new Problem(422, 'invalid_idempotency_key', 'Idempotency-Key is 1 – 255 printable ASCII characters', {
      field: 'Idempotency-Key',
    });
  }
  return { tenantId, key, bodyHash: createHash('sha256').update(body).digest() };
}

export function idempotencyConflict(): Problem {
  return new Problem(
    409,
    'idempotency_conflict',
    'This key came with another body within 24 hours: use a new key for a new request',
    { field: 'Idempotency-Key' },
  );
}
