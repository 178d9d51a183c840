/** Keyset pages. A cursor names the row it stands at and the direction, so that inserts never skip or repeat rows. */

export const defaultPageLimit = 50;
export const maxPageLimit = 250;

export interface PageRequest {
  readonly limit: number;
  readonly cursor: Cursor | null;
  /** Of the list and its filters: cursors that it gives carry it, so that none is used with others. */
  readonly scope?: string | undefined;
}

export interface Cursor {
  readonly direction: 'next' | 'prev';
  /** Where the row stands in the list's order: its id or number. */
  readonly id: string;
  readonly scope?: string | undefined;
}

export interface Page<T> {
  readonly rows: readonly T[];
  readonly nextCursor: string | null;
  readonly prevCursor: string | null;
}

export type PageOrder = 'newest first' | 'oldest first';

export function encodeCursor({ direction, id, scope }: Cursor): string {
  const text = [direction, id, ...(scope === undefined ? [] : [scope])].join(':');
  return Buffer.from(text, 'utf8').toString('base64url');
}

/** Null when the text isn't a cursor of ours. */
export function decodeCursor(text: string): Cursor | null {
  const match = /^(next|prev):([A-Za-z0-9_]{1,64})(?::([A-Za-z0-9_-]{1,16}))?$/.exec(
    Buffer.from(text, 'base64url').toString('utf8'),
  );
  if (!match?.[1] || !match[2]) return null;
  return { direction: match[1] as Cursor['direction'], id: match[2], scope: match[3] };
}

/** The comparison and order that go with a cursor; `column` is ours, never a caller's text. */
export function keyset(
  column: string,
  { cursor, limit }: PageRequest,
  parameter: number,
  order: PageOrder = 'newest first',
) {
  const descending = (order === 'newest first') !== (cursor?.direction === 'prev');
  return {
    where: cursor ? `and ${column} ${descending ? '<' : '>'} $${parameter}` : '',
    order: `order by ${column} ${descending ? 'desc' : 'asc'} limit ${limit + 1}`,
    values: cursor ? [cursor.id] : [],
  };
}

/** Makes a page of `limit + 1` rows as the statement returned them; `positionOf` is what the order compares. */
export function toPage<T>(
  found: readonly T[],
  { cursor, limit, scope }: PageRequest,
  positionOf: (row: T) => string,
): Page<T>;
export function toPage<T extends { id: string }>(found: readonly T[], page: PageRequest): Page<T>;
export function toPage<T extends { id?: string }>(
  found: readonly T[],
  { cursor, limit, scope }: PageRequest,
  positionOf: (row: T) => string = ({ id }) => id ?? '',
): Page<T> {
  const more = found.length > limit;
  const back = cursor?.direction === 'prev';
  const rows = found.slice(0, limit);
  if (back) rows.reverse();
  const first = rows[0];
  const last = rows.at(-1);
  // Where rows have gone meanwhile, a page may be empty: it leads back to where its reader came from.
  const firstAt = first === undefined ? cursor?.id : positionOf(first);
  const lastAt = last === undefined ? cursor?.id : positionOf(last);
  const hasNext = back || more;
  const hasPrev = back ? more : cursor !== null;
  return {
    rows,
    nextCursor: hasNext && lastAt !== undefined ? encodeCursor({ direction: 'next', id: lastAt, scope }) : null,
    prevCursor: hasPrev && firstAt !== undefined ? encodeCursor({ direction: 'prev', id: firstAt, scope }) : null,
  };
}
