/** How fast an endpoint may be sent to. */

/** So many failures in a row, and the endpoint is taken for down: from then on one request at a time asks whether it is back. */
export const failuresUntilDown = 3;

/** Between two such requests there is at least half of what the failed delivery waits itself, and never more than this. */
const maxProbeRestMs = 10_000;

/** How long nobody asks an endpoint that is down. Less than the schedule's own wait, so that a lone delivery keeps its times. */
export function probeRestMs(waitMs: number | null): number {
  return waitMs === null ? maxProbeRestMs : Math.min(Math.round(waitMs / 2), maxProbeRestMs);
}

/** An endpoint that answers again gets 1, 2, 4, … requests from second to second; after so many seconds it is as any other. */
export const riseSeconds = 8;

/** Deliveries that may have gone out when the rise is so old. */
export function risenTo(ageMs: number): number {
  return 2 ** (Math.floor(Math.max(0, ageMs) / 1_000) + 1) - 1;
}
