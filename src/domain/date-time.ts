const pattern = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/**
 * Reads an RFC 3339 date-time with any offset and returns it in UTC with milliseconds (finer fractions are cut), or null.
 * Years 1 – 9999 only: the database knows no year 0, RFC 3339 no year 10000.
 */
export function toUtcMilliseconds(text: string): string | null {
  const match = pattern.exec(text);
  if (!match) return null;
  const [year, month, day, hours, minutes, seconds] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const offsetHours = Number(match[9] ?? 0);
  const offsetMinutes = Number(match[10] ?? 0);
  if (hours > 23 || minutes > 59 || seconds > 60 || offsetHours > 23 || offsetMinutes > 59) return null;

  const time = new Date(0);
  // Unlike Date.UTC, this takes the years 0 – 99 as they are.
  time.setUTCFullYear(year, month - 1, day);
  if (time.getUTCMonth() !== month - 1 || time.getUTCDate() !== day) return null;
  time.setUTCHours(hours, minutes, seconds, Number((match[7] ?? '').padEnd(3, '0').slice(0, 3)));
  const offsetMs = (offsetHours * 60 + offsetMinutes) * 60_000 * (match[8] === '-' ? -1 : 1);
  time.setTime(time.getTime() - offsetMs);
  // A leap second comes only at the end of a UTC day, and is counted as the first second of the next one.
  if (seconds === 60 && (time.getUTCHours() !== 0 || time.getUTCMinutes() !== 0)) return null;
  const utcYear = time.getUTCFullYear();
  return utcYear < 1 || utcYear > 9999 ? null : time.toISOString();
}
