import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { cacheDirectory } from '../../src/embedded/cache-dir.js';
import { startEmbeddedPostgres } from '../../src/embedded/embedded-postgres.js';
import { findFreePorts } from '../../src/embedded/ports.js';
import { silentProgress } from '../../src/embedded/progress.js';
import { findTemporalCli } from '../../src/embedded/temporal-cli.js';
import { makeWorkDir } from './embedded.js';
import { type Engines, measuredSettings } from './engines.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));

interface TemporalServer {
  readonly address: string;
  readonly pidFile: string;
  setUpSchema(): void;
  createNamespace(): void;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** The scripts of `npm run test:production-server`, which are not compiled. */
interface Scripts {
  readonly readCompose: (root: string) => { readonly postgresSettings: Record<string, string> };
  readonly findTemporalPorts: () => Promise<object>;
  readonly TemporalServer: new (options: object) => TemporalServer;
}

/** A production Temporal server on Postgres, set up as docker-compose.yml does it; `binaries` is a folder with `server` and `sql`. */
export async function startProductionEngines(binaries: string): Promise<Engines> {
  const { readCompose, findTemporalPorts, TemporalServer } = await loadScripts();
  const compose = readCompose(root);
  const workDir = makeWorkDir();
  const [port] = await findFreePorts(1);
  const cli = await findTemporalCli({
    cliPath: process.env['TEMPORAL_CLI_PATH'] ?? null,
    cacheDir: cacheDirectory(process.env, '.posthorn'),
    progress: silentProgress,
  });
  const postgres = await startEmbeddedPostgres({
    dataDir: workDir,
    port: port!,
    progress: silentProgress,
    settings: { ...compose.postgresSettings, ...measuredSettings },
  });
  try {
    const database = {
      host: '127.0.0.1',
      port: port!,
      user: 'temporal',
      password: randomBytes(18).toString('hex'),
    };
    await createRole(postgres.url, database.user, database.password);
    const temporal = new TemporalServer({
      root,
      workDir,
      binaries: { server: join(binaries, 'server'), sql: join(binaries, 'sql') },
      cli,
      compose,
      database,
      ports: await findTemporalPorts(),
    });
    temporal.setUpSchema();
    await temporal.start();
    temporal.createNamespace();
    return {
      name: 'Postgres, production Temporal server on the same Postgres',
      postgresUrl: postgres.url,
      postgresPid: postgres.pid,
      temporalAddress: temporal.address,
      temporalPid: Number(readFileSync(temporal.pidFile, 'utf8')),
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

async function loadScripts(): Promise<Scripts> {
  const load = (name: string): Promise<Scripts> =>
    import(new URL(`../../../scripts/production-server/${name}.mjs`, import.meta.url).href) as Promise<Scripts>;
  return { ...(await load('compose-file')), ...(await load('temporal-server')) };
}

async function createRole(url: string, user: string, password: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`create role ${user} login createdb password '${password}'`);
  } finally {
    await client.end();
  }
}
