const hour = 3_600_000;

/** A disabled endpoint is asked whether it answers again for so long. */
export const probeForMs = 30 * 24 * hour;

/** Until the next try, after so many: 1 h, 2 h, 4 h … and then daily. */
export function probeWaitMs(tries: number): number {
  return Math.min(2 ** tries, 24) * hour;
}
