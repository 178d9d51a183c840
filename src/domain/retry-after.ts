const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const clock = '(\\d{2}):(\\d{2}):(\\d{2})';

/** RFC 9110 section 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`. */
const imfDate = new RegExp(`^[a-z]+, (\\d{1,2}) ([a-z]{3}) (\\d{4}) ${clock} (?:GMT|UTC)$`, 'i');
/** RFC 850: `Sunday, 06-Nov-94 08:49:37 GMT`. */
const rfc850Date = new RegExp(`^[a-z]+, (\\d{1,2})-([a-z]{3})-(\\d{2}|\\d{4}) ${clock} (?:GMT|UTC)$`, 'i');
/** C's asctime(): `Sun Nov  6 08:49:37 1994`. */
const asctimeDate = new RegExp(`^[a-z]{3} ([a-z]{3}) {1,2}(\\d{1,2}) ${clock} (\\d{4})$`, 'i');

const seconds = /^\d+(?:\.\d*)?$/;

/**
 * How long an endpoint asks us to wait, in whole milliseconds (RFC 9110 section 10.2.3); null when it says nothing that can
 * be read. A date in the past is 0. Of several values the longest counts: never earlier than asked. No cap is applied here.
 */
export function parseRetryAfterMs(values: readonly string[], nowMs: number): number | null {
  let longest: number | null = null;
  for (const value of values) {
    const waitMs = parseOne(value.trim(), nowMs);
    if (waitMs !== null && (longest === null || waitMs > longest)) longest = waitMs;
  }
  return longest;
}

function parseOne(value: string, nowMs: number): number | null {
  const date = parseDate(value, nowMs);
  if (date !== null) return wholeMs(Math.max(0, date - nowMs));
  // Proxies join repeated headers with commas.
  const waits = value.split(',').map((part) => parseSeconds(part.trim()));
  return waits.reduce((longest, wait) => (longest === null || wait === null ? null : Math.max(longest, wait)));
}

function parseSeconds(text: string): number | null {
  return seconds.test(text) ? wholeMs(Number(text) * 1_000) : null;
}

/** Rounds up, so that it is never too early, and stays a safe integer however many digits came. */
function wholeMs(ms: number): number | null {
  return Number.isNaN(ms) ? null : Math.min(Math.ceil(ms), Number.MAX_SAFE_INTEGER);
}

function parseDate(value: string, nowMs: number): number | null {
  const imf = imfDate.exec(value);
  if (imf) return utcMs(Number(imf[3]), imf[2], imf.slice(4), imf[1]);
  const rfc850 = rfc850Date.exec(value);
  if (rfc850) return utcMs(fullYear(rfc850[3] ?? '', nowMs), rfc850[2], rfc850.slice(4), rfc850[1]);
  const asctime = asctimeDate.exec(value);
  if (asctime) return utcMs(Number(asctime[6]), asctime[1], asctime.slice(3, 6), asctime[2]);
  return null;
}

/** A two-digit year that seems more than 50 years ahead is the last such year in the past (RFC 9110 section 5.6.7). */
function fullYear(text: string, nowMs: number): number {
  if (text.length === 4) return Number(text);
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(text);
  return year > thisYear + 50 ? year - 100 : year;
}

function utcMs(year: number, monthName: string | undefined, time: readonly string[], dayText: string | undefined) {
  const month = months.indexOf((monthName ?? '').toLowerCase());
  const day = Number(dayText);
  const [hour = 0, minute = 0, second = 0] = time.map(Number);
  if (month < 0 || hour > 23 || minute > 59 || second > 60) return null;
  const midnight = new Date(Date.UTC(year, month, day));
  // Date.UTC moves the years 0 to 99 into the 20th century.
  midnight.setUTCFullYear(year);
  // 31 November would silently become 1 December.
  if (midnight.getUTCMonth() !== month || midnight.getUTCDate() !== day) return null;
  const ms = midnight.getTime() + ((hour * 60 + minute) * 60 + second) * 1_000;
  return Number.isNaN(ms) ? null : ms;
}
