import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheDirectory } from '../../src/embedded/cache-dir.js';
import { startEmbeddedPostgres } from '../../src/embedded/embedded-postgres.js';
import { startEmbeddedTemporal } from '../../src/embedded/embedded-temporal.js';
import { findFreePorts } from '../../src/embedded/ports.js';
import { silentProgress } from '../../src/embedded/progress.js';
import { findTemporalCli } from '../../src/embedded/temporal-cli.js';
import { type Engines, measuredSettings } from './engines.js';

/** The engines of `npm start`. */
export async function startEmbeddedEngines(): Promise<Engines> {
  const workDir = makeWorkDir();
  const [postgresPort, temporalPort] = await findFreePorts(2);
  const cli = await findTemporalCli({
    cliPath: process.env['TEMPORAL_CLI_PATH'] ?? null,
    cacheDir: cacheDirectory(process.env, '.posthorn'),
    progress: silentProgress,
  });
  const postgres = await startEmbeddedPostgres({
    dataDir: workDir,
    port: postgresPort!,
    progress: silentProgress,
    settings: measuredSettings,
  });
  try {
    const temporal = await startEmbeddedTemporal({
      cli,
      dataDir: workDir,
      port: temporalPort!,
      uiPort: null,
      namespace: 'default',
      progress: silentProgress,
    });
    return {
      name: 'embedded Postgres, Temporal development server on SQLite',
      postgresUrl: postgres.url,
      postgresPid: postgres.pid,
      temporalAddress: temporal.address,
      temporalPid: temporal.pid,
      workDir,
      async stop() {
        await temporal.stop();
        await postgres.stop();
        rmSync(workDir, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** As root, Postgres runs as somebody else, who must be able to pass through. */
export function makeWorkDir(): string {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-bench-'));
  chmodSync(directory, 0o711);
  return directory;
}
