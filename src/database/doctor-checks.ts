import { fail, type Finding, ok } from '../embedded/doctor/finding.js';
import { pingDatabase } from './ping.js';

const OLDEST_MAJOR = 14;

/** Whether the database answers, and is new enough. The URL's password is never repeated. */
export async function checkDatabase(url: string): Promise<Finding> {
  const place = describeUrl(url);
  try {
    const { version } = await pingDatabase(url);
    if (Number.parseInt(version, 10) >= OLDEST_MAJOR) return ok(`Database ${place}: Postgres ${version}`);
    return fail(`Database ${place}: Postgres ${version} is too old`, `Use Postgres ${OLDEST_MAJOR} or newer.`);
  } catch (error) {
    return fail(
      `Database ${place} can't be reached: ${describeError(error)}`,
      'Start it, or correct POSTHORN_DATABASE_URL; unset it to use the embedded Postgres.',
    );
  }
}

function describeUrl(url: string): string {
  try {
    const { host, pathname } = new URL(url);
    return `${host}${pathname}`;
  } catch {
    return '(POSTHORN_DATABASE_URL)';
  }
}

/** A refused connection to a name with several addresses is an AggregateError without a text of its own. */
function describeError(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describeError).join('; ');
  return error instanceof Error ? error.message : String(error);
}
