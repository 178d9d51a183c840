/** Keyset pages over ids, newest first. A cursor names the row it stands at and the direction, so that inserts never skip or repeat rows. */

export const defaultPageLimit = 50;
export const maxPageLimit = 250;

export interface PageRequest {
  readonly limit: number;
  readonly cursor: Cursor | null;
}

export interface Cursor {
  readonly direction: 'next' | 'prev';
  readonly id: string;
}

export interface Page<T> {
  readonly rows: readonly T[];
  readonly nextCursor: string | null;
  readonly prevCursor: string | null;
}

export function encodeCursor({ direction, id }: Cursor): string {
  return Buffer.from(`${direction}:${id}`, 'utf8').toString('base64url');
}

/** Null when the text isn't a cursor of ours. */
export function decodeCursor(text: string): Cursor | null {
  const match = /^(next|prev):([A-Za-z0-9_]{1,64})$/.exec(Buffer.from(text, 'base64url').toString('utf8'));
  return match?.[1] && match[2] ? { direction: match[1] as Cursor['direction'], id: match[2] } : null;
}

/** The comparison and order that go with a cursor; `column` is ours, never a caller's text. */
export function keyset(column: string, { cursor, limit }: PageRequest, parameter: number) {
  const back = cursor?.direction === 'prev';
  return {
    where: cursor ? `and ${column} ${back ? '>' : '<'} $${parameter}` : '',
    order: `order by ${column} ${back ? 'asc' : 'desc'} limit ${limit + 1}`,
    values: cursor ? [cursor.id] : [],
  };
}

/** Makes a page of `limit + 1` rows as the statement returned them. */
export function toPage<T extends { id: string }>(found: readonly T[], { cursor, limit }: PageRequest): Page<T> {
  const more = found.length > limit;
  const back = cursor?.direction === 'prev';
  const rows = found.slice(0, limit);
  if (back) rows.reverse();
  const first = rows[0];
  const last = rows.at(-1);
  const hasNext = back ? last !== undefined : more;
  const hasPrev = back ? more : cursor !== null;
  return {
    rows,
    nextCursor: hasNext && last ? encodeCursor({ direction: 'next', id: last.id }) : null,
    prevCursor: hasPrev && first ? encodeCursor({ direction: 'prev', id: first.id }) : null,
  };
}
