import type { FeedCursor } from '../../database/event-feed-store.js';

/** A tilde tells a cursor from an event's id, which can't have one. */
const mark = '~';
const pattern = /^(next|prev):(-?\d{1,10})\.(\d{1,19})\.(\d{1,19})$/;
const largest = { epoch: 2n ** 31n - 1n, xid: 2n ** 63n, seq: 2n ** 63n - 1n } as const;

export function encodeFeedCursor({ direction, epoch, xid, seq }: FeedCursor): string {
  return mark + Buffer.from(`${direction}:${epoch}.${xid}.${seq}`, 'utf8').toString('base64url');
}

/** Null when the text isn't a cursor of ours. */
export function decodeFeedCursor(text: string): FeedCursor | null {
  if (!isFeedCursor(text)) return null;
  const match = pattern.exec(Buffer.from(text.slice(mark.length), 'base64url').toString('utf8'));
  if (!match) return null;
  const [direction, epoch, xid, seq] = match.slice(1) as ['next' | 'prev', string, string, string];
  if (BigInt(epoch) > largest.epoch || BigInt(xid) > largest.xid || BigInt(seq) > largest.seq) return null;
  return { direction, epoch, xid, seq };
}

export const isFeedCursor = (text: string): boolean => text.startsWith(mark);
