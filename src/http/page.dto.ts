import { z } from 'zod';
import { type Cursor, decodeCursor, defaultPageLimit, maxPageLimit } from '../database/page.js';

/** Query of every list. */
export const pageQuery = {
  limit: z.coerce
    .number({ error: `limit is a whole number from 1 to ${maxPageLimit}` })
    .int(`limit is a whole number from 1 to ${maxPageLimit}`)
    .min(1, `limit is at least 1`)
    .max(maxPageLimit, `limit is at most ${maxPageLimit}`)
    .default(defaultPageLimit)
    .describe(`Rows per page, 1 – ${maxPageLimit}.`),
  cursor: z
    .string()
    .max(200)
    .refine((text) => decodeCursor(text) !== null, 'cursor must be a next_cursor or prev_cursor of an earlier answer')
    .optional()
    .describe('`next_cursor` or `prev_cursor` of an earlier answer.'),
  tenant_id: z.string().optional().describe('With a service key: the tenant to act for. Default `default`.'),
};

export function toPageRequest(query: { limit: number; cursor?: string | undefined }): {
  limit: number;
  cursor: Cursor | null;
} {
  return { limit: query.limit, cursor: query.cursor === undefined ? null : decodeCursor(query.cursor) };
}

export function listOf<T extends z.ZodType>(item: T) {
  return z.object({
    data: z.array(item),
    next_cursor: z.string().nullable().describe('Cursor of the next page; null on the last one.'),
    prev_cursor: z.string().nullable().describe('Cursor of the page before; null on the first one.'),
  });
}
