import { monotonicFactory } from 'ulid';
import type { idPrefixes } from '../domain/ids.js';

export type IdPrefix = (typeof idPrefixes)[keyof typeof idPrefixes];

// Monotonic, so that ids made by one process within one millisecond still sort in the order of their making.
const nextUlid = monotonicFactory();

/** A new id: the prefix and a ULID. */
export function newId(prefix: IdPrefix): string {
  return prefix + nextUlid();
}
