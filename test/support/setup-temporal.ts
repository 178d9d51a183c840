import type { TestProject } from 'vitest/node';
import './provided.js';
import { startTestDevServer } from './engines.js';

/** One Temporal development server per test run. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const temporal = await startTestDevServer();
  provide('temporalAddress', temporal.address);
  return () => temporal.stop();
}
