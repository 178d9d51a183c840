import { createHash } from 'node:crypto';
import { z } from 'zod';
import { decodeCursor, defaultPageLimit, maxPageLimit, type PageRequest } from '../database/page.js';
import { tenantIdPattern } from '../domain/ids.js';
import { Problem } from './problems/problem.js';

const limitRule = `limit is a whole number from 1 to ${maxPageLimit}`;

export const limitParameter = z
  .string({ error: limitRule })
  .regex(/^[1-9][0-9]{0,3}$/, limitRule)
  .transform(Number)
  .refine((limit) => limit <= maxPageLimit, limitRule)
  .prefault(String(defaultPageLimit))
  .meta({
    openapi: { type: 'integer', minimum: 1, maximum: maxPageLimit, default: defaultPageLimit },
    description: `Rows per page, 1 – ${maxPageLimit}.`,
  });

/** Names the tenant of a request that has no body to name it in. */
export const tenantParameter = z
  .string({ error: 'tenant_id must be given once only' })
  .regex(tenantIdPattern, 'tenant_id is 1 – 64 of the characters A-Z a-z 0-9 . _ -')
  .optional()
  .meta({
    description: 'The tenant to act for, with a service key: 1 – 64 of `[A-Za-z0-9._-]`, by default `default`.',
    example: 'default',
  });

/** Query of a call about one thing. */
export const tenantQuery = z.strictObject({ tenant_id: tenantParameter });
export type TenantQuery = z.infer<typeof tenantQuery>;

/** Query of a call that takes none: a misspelt or misplaced parameter is told, not ignored. */
export const noQuery = z.strictObject({});

/** Query of every list. */
export const pageQuery = {
  limit: limitParameter,
  cursor: z
    .string({ error: 'cursor must be given once only' })
    .max(200, 'cursor must be a next_cursor or prev_cursor of an earlier answer')
    .refine((text) => decodeCursor(text) !== null, 'cursor must be a next_cursor or prev_cursor of an earlier answer')
    .optional()
    .meta({ description: '`next_cursor` or `prev_cursor` of an earlier answer: the page after it, or before it.' }),
  tenant_id: tenantParameter,
};

/** Names a list with its filters, for the cursors that it gives: with others they would skip rows without a word. */
export function listScope(list: string, tenantId: string, filter: object): string {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  const text = JSON.stringify([list, tenantId, ...given.sort(([a], [b]) => (a < b ? -1 : 1))]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 8);
}

/**
 * What a query asks for of a list. `positions` is the form of that list's positions.
 * @throws Problem 422 where the cursor belongs to another list or to other filters.
 */
export function toPageRequest(
  query: { limit: number; cursor?: string | undefined },
  { scope, positions = /^\w+$/ }: { scope?: string; positions?: RegExp } = {},
): PageRequest {
  const cursor = query.cursor === undefined ? null : decodeCursor(query.cursor);
  if (cursor && (cursor.scope !== scope || !positions.test(cursor.id))) {
    throw new Problem(
      422,
      'invalid_field',
      'cursor belongs to another list, or to other filters: keep the filters the same, or begin without a cursor',
      { field: 'cursor' },
    );
  }
  return { limit: query.limit, cursor, scope };
}

/** Positions in lists that are ordered by a number. */
export const numbered = /^\d{1,18}$/;

export function listOf<T extends z.ZodType>(item: T) {
  return z.object({
    data: z.array(item).describe('The rows of this page.'),
    next_cursor: z.string().nullable().describe('Cursor of the next page; null on the last one.'),
    prev_cursor: z.string().nullable().describe('Cursor of the page before; null on the first one.'),
  });
}
