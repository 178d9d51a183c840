import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import type { idPrefixes } from '../domain/ids.js';

export type IdPrefix = (typeof idPrefixes)[keyof typeof idPrefixes];

/** Random bytes are drawn for some hundred ids at once: one by one, as the library would, costs more than the rest of an id. */
const drawn = Buffer.alloc(4_096);
let used = drawn.length;

function nextRandom(): number {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  return drawn[used++]! / 256;
}

// Monotonic, so that ids made by one process within one millisecond still sort in the order of their making.
const nextUlid = monotonicFactory(nextRandom);

/** A new id: the prefix and a ULID. */
export function newId(prefix: IdPrefix): string {
  return prefix + nextUlid();
}
