import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The version of docker-compose.yml's images. */
export const temporalVersion = '1.32.1';
const goModule = 'go.temporal.io/server';
const programs = { server: 'cmd/server', sql: 'cmd/tools/sql' };

/** Says what is missing and what to do. */
export class MissingToolError extends Error {
  name = 'MissingToolError';
}

/**
 * The Temporal server and its schema tool, built once from their Go module and kept in the user's cache.
 * @param {AbortSignal} signal ends the build
 * @returns {Promise<{ server: string, sql: string }>} their paths
 */
export async function buildTemporal(cacheDir, progress, signal) {
  const directory = join(cacheDir, `temporal-server-${temporalVersion}`);
  const paths = Object.fromEntries(Object.keys(programs).map((name) => [name, join(directory, name)]));
  if (Object.values(paths).every((path) => existsSync(path))) {
    progress.note(`Temporal ${temporalVersion} is built already: ${directory}`);
    return paths;
  }
  const go = spawnSync('go', ['version'], { encoding: 'utf8' });
  if (go.status !== 0) {
    throw new MissingToolError(
      `Go is not on the PATH, and Temporal ${temporalVersion} has to be built once. Install Go 1.21 or later ` +
        '(https://go.dev/doc/install; it fetches the version that the module wants), then run this again.',
    );
  }
  progress.note(`Building with ${go.stdout.trim()}; the first build fetches the modules and takes about 10 minutes`);
  const line = progress.start(`Building the Temporal server ${temporalVersion}`);
  mkdirSync(cacheDir, { recursive: true });
  const draft = mkdtempSync(`${directory}.`);
  chmodSync(draft, 0o755);
  try {
    await goInstall(draft, signal);
    // Another run may have been faster: its build is as good as ours.
    if (existsSync(directory)) rmSync(directory, { recursive: true });
    renameSync(draft, directory);
  } catch (error) {
    line.fail();
    throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  line.done();
  return paths;
}

function goInstall(directory, signal) {
  const targets = Object.values(programs).map((path) => `${goModule}/${path}@v${temporalVersion}`);
  return new Promise((resolve, reject) => {
    const child = spawn('go', ['install', ...targets], {
      cwd: directory,
      env: { ...process.env, GOBIN: directory },
      stdio: ['ignore', 'ignore', 'pipe'],
      signal,
    });
    let output = '';
    child.stderr.on('data', (chunk) => (output = (output + chunk).slice(-4_000)));
    child.once('error', reject);
    child.once('exit', (code, signal) =>
      code === 0 ? resolve() : reject(new Error(`go install ended with ${code ?? signal}:\n${output}`)),
    );
  });
}
