#!/usr/bin/env node
/** `npm run test:production-server`: the end-to-end suite on a production Temporal server with Postgres, without containers. */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { readCompose } from './production-server/compose-file.mjs';
import { buildTemporal, MissingToolError, temporalVersion } from './production-server/temporal-binaries.mjs';
import { findTemporalPorts, TemporalServer } from './production-server/temporal-server.mjs';

const help = `Usage: npm run test:production-server [-- options] [-- arguments of vitest]

Runs the end-to-end suite on Temporal server ${temporalVersion} with Postgres for history and visibility, configured as in
docker-compose.yml, with API and worker as two processes each. Everything listens on loopback and ends with the run.

Temporal is built once from its Go module, which needs Go and takes about 10 minutes; the programs are kept in
$XDG_CACHE_HOME/posthorn or ~/.cache/posthorn.

  --project NAME   only one of the projects: production (two processes each), e2e (test/e2e on this server)
  --serve          start Postgres and Temporal, print their addresses and wait for Ctrl-C instead of testing
  --keep           keep logs and data after the run, and say where they are
  --help           this text
`;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const args = process.argv.slice(2);
if (args.includes('--help') || args.includes('-h')) {
  process.stdout.write(help);
  process.exit(0);
}
const keep = take('--keep');
const serve = take('--serve');

const startedAt = Date.now();
const cleanups = [];
let tests = null;
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    stop.abort();
    tests?.kill('SIGINT');
  });
}

const build = spawnSync(process.execPath, [join(root, 'scripts', 'build.mjs')], { stdio: 'inherit' });
if (build.status !== 0) process.exit(build.status ?? 1);
const embedded = (name) => import(new URL(`../dist/src/embedded/${name}.js`, import.meta.url).href);
const { createProgress, withProgress } = await embedded('progress');
const progress = createProgress(process.stderr);

let exitCode = 1;
try {
  exitCode = await run();
} catch (error) {
  if (!stop.signal.aborted)
    process.stderr.write(`${error instanceof MissingToolError ? error.message : (error.stack ?? error)}\n`);
} finally {
  for (const cleanup of cleanups.toReversed()) {
    try {
      await cleanup();
    } catch (error) {
      process.stderr.write(`While stopping: ${error.stack ?? error}\n`);
      exitCode ||= 1;
    }
  }
}
const seconds = Math.round((Date.now() - startedAt) / 1_000);
process.stderr.write(
  stop.signal.aborted
    ? `Stopped after ${seconds} s; nothing is left running.\n`
    : `${exitCode === 0 ? '✔' : '✖'} Production server suite on Temporal ${temporalVersion}: ${exitCode === 0 ? 'passed' : 'failed'} in ${seconds} s\n`,
);
process.exit(stop.signal.aborted ? 130 : exitCode);

async function run() {
  const { cacheDirectory } = await embedded('cache-dir');
  const { findFreePorts } = await embedded('ports');
  const { findTemporalCli } = await embedded('temporal-cli');
  const { startEmbeddedPostgres } = await embedded('embedded-postgres');
  const cacheDir = cacheDirectory(process.env, join(root, '.posthorn'));
  const binaries = await buildTemporal(cacheDir, progress, stop.signal);
  const cli = await findTemporalCli({ cliPath: process.env.TEMPORAL_CLI_PATH ?? null, cacheDir, progress });
  if (stop.signal.aborted) return 130;

  const compose = readCompose(root);
  const workDir = mkdtempSync(join(tmpdir(), 'posthorn-production-'));
  // As root, Postgres runs as somebody else, who must be able to pass through.
  chmodSync(workDir, 0o711);
  cleanups.push(() => {
    if (keep) progress.note(`Logs and data are in ${workDir}`);
    else rmSync(workDir, { recursive: true, force: true });
  });

  const [postgresPort] = await findFreePorts(1);
  const postgres = await startEmbeddedPostgres({
    dataDir: workDir,
    port: postgresPort,
    progress,
    // No run pulls the plug of the machine; kill -9 loses nothing without fsync.
    settings: { ...compose.postgresSettings, fsync: 'off', full_page_writes: 'off' },
  });
  cleanups.push(() => postgres.stop());

  const database = {
    host: '127.0.0.1',
    port: postgresPort,
    user: 'temporal',
    password: randomBytes(18).toString('hex'),
  };
  await createTemporalRole(postgres.url, database);
  const temporal = new TemporalServer({
    root,
    workDir,
    binaries,
    cli,
    compose,
    database,
    ports: await findTemporalPorts(),
  });
  await withProgress(progress, "Setting up Temporal's schema, and once more as an upgrade does", async () => {
    temporal.setUpSchema();
    temporal.setUpSchema();
  });
  temporal.validateDynamicConfig();
  cleanups.push(() => temporal.stop());
  await withProgress(
    progress,
    `Starting Temporal ${temporalVersion} on port ${temporal.address.split(':')[1]}`,
    async () => {
      await temporal.start();
      temporal.createNamespace();
      temporal.createNamespace();
    },
  );
  if (stop.signal.aborted) return 130;

  const processDir = join(workDir, 'processes');
  mkdirSync(processDir);
  cleanups.push(() => endLeftProcesses(processDir));
  const state = {
    postgresUrl: postgres.url,
    temporalAddress: temporal.address,
    temporalHealthUrl: temporal.healthUrl,
    temporalPidFile: temporal.pidFile,
    namespace: compose.namespace,
    cli,
    processDir,
  };
  const stateFile = join(workDir, 'state.json');
  writeFileSync(stateFile, JSON.stringify(state));
  if (serve) {
    process.stdout.write(`${JSON.stringify(state, null, 2)}\n`);
    if (!stop.signal.aborted) await once(stop.signal, 'abort');
    return 0;
  }
  const code = await runTests(stateFile);
  if (code !== 0 && !stop.signal.aborted) progress.note(`The Temporal server's log ends with:\n${temporal.logTail()}`);
  return code;
}

/** As deploy/postgres/create-temporal-role.sh does. */
async function createTemporalRole(url, { user, password }) {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`CREATE ROLE ${user} LOGIN CREATEDB PASSWORD '${password}'`);
    await client.query(`REVOKE CONNECT ON DATABASE ${new URL(url).pathname.slice(1)} FROM PUBLIC`);
  } finally {
    await client.end();
  }
}

function runTests(stateFile) {
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  return new Promise((resolve, reject) => {
    tests = spawn(process.execPath, [vitest, 'run', '--config', 'vitest.production.config.ts', ...args], {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, PRODUCTION_SERVER_STATE: stateFile },
    });
    tests.once('error', reject);
    tests.once('exit', (code) => resolve(code ?? 1));
  });
}

/** API and worker processes of a test that did not come to its end. Each has a file, named by its number. */
async function endLeftProcesses(directory) {
  const { readProcess, waitForProcessEnd } = await embedded('process-identity');
  for (const name of readdirSync(directory)) {
    const pid = Number(name);
    const found = readProcess(pid);
    if (!found || found.startedAt !== readFileSync(join(directory, name), 'utf8')) continue;
    process.stderr.write(`Ending process ${pid}, which a test left behind\n`);
    process.kill(pid, 'SIGKILL');
    await waitForProcessEnd(pid, found, 5_000);
  }
}

function take(flag) {
  const index = args.indexOf(flag);
  if (index >= 0) args.splice(index, 1);
  return index >= 0;
}
