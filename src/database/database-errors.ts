import {
  CannotExecuteNotConnectedError,
  QueryFailedError,
  QueryRunnerAlreadyReleasedError,
  QueryRunnerProviderAlreadyReleasedError,
} from 'typeorm';

/** Errors are recognised by their classes and codes, never by their text. */

/** No connection could be had: the pool's own errors are plain ones, so data-source.ts marks them with this. */
export class NoConnectionError extends Error {
  override readonly name = 'NoConnectionError';
  constructor(cause: unknown) {
    super('no connection to the database', { cause });
  }
}

/** SQLSTATE classes that say: later, not: the statement is wrong. Connection, rolled back, resources, operator, system. */
const awayClasses = new Set(['08', '40', '53', '57', '58']);
/** A statement that writes met a standby: a failover is under way. */
const readOnly = '25006';
const awayNodeCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
]);

/** True when the same statement may succeed once the database is back. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof NoConnectionError || error instanceof CannotExecuteNotConnectedError) return true;
  // The connection broke in the middle of a transaction: at its end, or between two of its statements.
  if (error instanceof QueryRunnerAlreadyReleasedError || error instanceof QueryRunnerProviderAlreadyReleasedError)
    return true;
  if (!(error instanceof QueryFailedError)) return false;
  const code = codeOf(error);
  // The driver reports a lost connection and its own time-outs without a code; what the server refuses always has one.
  return code === undefined || code === readOnly || awayNodeCodes.has(code) || awayClasses.has(code.slice(0, 2));
}

/** Two transactions waited for each other, and this one made way: its own work is as good as ever. */
export function isDeadlock(error: unknown): boolean {
  return codeOf(error) === '40P01';
}

/** The server is there but lets us not in: wrong user or password (28…), or no such database (3D…). */
export function isDatabaseRefused(error: unknown): boolean {
  return ['28', '3D'].includes((codeOf(error) ?? '').slice(0, 2));
}

/** The statement was ended because it took too long. */
export function isStatementTooLong(error: unknown): boolean {
  return codeOf(error) === '57014';
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, driverError } = error as { code?: unknown; driverError?: unknown };
  return typeof code === 'string' ? code : codeOf(driverError);
}
