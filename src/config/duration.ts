const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * Reads a duration such as `500ms`, `1s`, `5m`, `2h`, `30d` as whole milliseconds.
 * @throws {Error} saying which form is expected.
 */
export function parseDurationMs(text: string): number {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text.trim());
  if (!match)
    throw new Error(`'${text}' is not a duration: write a number and a unit, such as 500ms, 30s, 5m, 2h or 30d`);
  return Math.round(Number(match[1]) * units[match[2] as keyof typeof units]);
}
