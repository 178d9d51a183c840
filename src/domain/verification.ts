const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** When an endpoint is asked, counted from the first try: then hourly, until its time is over. */
const offsetsMs = [0, 10 * second, minute, 10 * minute, hour];

/** Milliseconds from the first try to the one that follows after `tries`. */
export function verificationOffsetMs(tries: number): number {
  return offsetsMs[tries] ?? (tries - offsetsMs.length + 2) * hour;
}
