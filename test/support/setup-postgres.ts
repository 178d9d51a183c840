import type { TestProject } from 'vitest/node';
import './provided.js';
import { startTestPostgres } from './engines.js';

/** One Postgres per test run. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const postgres = await startTestPostgres();
  provide('postgresUrl', postgres.url);
  return () => postgres.stop();
}
