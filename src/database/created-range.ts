import { encodeTime } from 'ulid';
import type { IdPrefix } from '../security/new-id.js';

/** From `after` on, and before `before`. */
export interface CreatedRange {
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
}

/** An id is made by another clock than `created_at`, and rows become visible only a while after: by so much they may differ. */
export const clockMarginMs = 10 * 60_000;

/**
 * Ids between which all rows of the range lie, so that an index in the order of ids serves a condition on their time. The
 * condition itself has to stand beside it: the ids are off by {@link clockMarginMs}.
 */
export function idsAround(
  prefix: IdPrefix,
  { createdAfter, createdBefore }: CreatedRange,
): { readonly from: string | undefined; readonly to: string | undefined } {
  return {
    from: createdAfter && `${idTime(prefix, createdAfter.getTime() - clockMarginMs)}${'0'.repeat(16)}`,
    to: createdBefore && `${idTime(prefix, createdBefore.getTime() + clockMarginMs)}${'Z'.repeat(16)}`,
  };
}

const idTime = (prefix: IdPrefix, ms: number): string =>
  prefix + encodeTime(Math.min(Math.max(Math.floor(ms), 0), 2 ** 48 - 1), 10);
