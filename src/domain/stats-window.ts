/** What `by=` may be, in milliseconds, and the longest window that may be asked for with it. */
export const statsBuckets = {
  minute: { ms: 60_000, longestMs: 6 * 3_600_000, longest: '6 hours' },
  hour: { ms: 3_600_000, longestMs: 7 * 86_400_000, longest: '7 days' },
  day: { ms: 86_400_000, longestMs: 92 * 86_400_000, longest: '92 days' },
} as const;

export type StatsBucket = keyof typeof statsBuckets;

/** Where the buckets of a window begin, in UTC; the first one may begin before the window. */
export function bucketStarts(fromMs: number, toMs: number, by: StatsBucket): number[] {
  const { ms } = statsBuckets[by];
  const starts: number[] = [];
  for (let at = Math.floor(fromMs / ms) * ms; at < toMs; at += ms) starts.push(at);
  return starts;
}
