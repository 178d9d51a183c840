/** Errors are recognised by their codes, never by their text. */

/** SQLSTATE classes and Node codes that say: the database is away, not: the statement is wrong. */
const awayClasses = new Set(['08', '53', '57']);
const awayNodeCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
]);

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, driverError } = error as { code?: unknown; driverError?: unknown };
  return typeof code === 'string' ? code : codeOf(driverError);
}

/** True when the statement may succeed once the database is back. pg's own client-side failures carry no code. */
export function isDatabaseAway(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined) return isClientFailure(error);
  return awayNodeCodes.has(code) || awayClasses.has(code.slice(0, 2));
}

// pg reports a lost connection, a full pool and its own time-outs as plain errors without a code; a statement's error always has one.
function isClientFailure(error: unknown): boolean {
  return (
    error instanceof Error &&
    !(error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError)
  );
}

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505';
}
