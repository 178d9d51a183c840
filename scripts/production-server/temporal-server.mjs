import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

const startTimeoutMs = 90_000;
const stopGraceMs = 20_000;
/** How long the server stays away after it was killed: long enough to be missed. */
const restartAfterMs = 5_000;

/**
 * Temporal on Postgres, set up and configured as docker-compose.yml does it: the same scripts, the same environment. Like
 * its container it is started again whenever it ends, so that a test may kill it.
 */
export class TemporalServer {
  #child = null;
  #stopping = false;
  #restart = null;

  constructor(options) {
    this.options = options;
    const { workDir, ports } = options;
    this.address = `127.0.0.1:${ports.frontend}`;
    this.healthUrl = `http://127.0.0.1:${ports.http}${options.compose.temporalHealthPath}`;
    this.pidFile = join(workDir, 'temporal.pid');
    this.logFile = join(workDir, 'temporal.log');
  }

  /** Runs a script of deploy/temporal with the programs that its image has. */
  #runScript(name, env) {
    const { workDir, root, binaries, cli } = this.options;
    const bin = join(workDir, 'bin');
    mkdirSync(bin, { recursive: true });
    for (const [command, path] of [
      ['temporal-sql-tool', binaries.sql],
      ['temporal', cli],
    ]) {
      try {
        symlinkSync(path, join(bin, command));
      } catch (error) {
        if (error.code !== 'EEXIST') throw error;
      }
    }
    const { status, stdout, stderr } = spawnSync('sh', [join(root, 'deploy', 'temporal', name)], {
      env: { PATH: `${bin}:${process.env.PATH}`, HOME: workDir, ...env },
      encoding: 'utf8',
      timeout: 180_000,
    });
    if (status !== 0)
      throw new Error(`deploy/temporal/${name} ended with ${status}:\n${(stdout + stderr).slice(-3_000)}`);
    return stdout + stderr;
  }

  setUpSchema() {
    const { host, port, user, password } = this.options.database;
    return this.#runScript('setup-schema.sh', {
      SQL_PLUGIN: this.options.compose.temporalEnvironment.DB,
      SQL_HOST: host,
      SQL_PORT: String(port),
      SQL_USER: user,
      SQL_PASSWORD: password,
    });
  }

  createNamespace() {
    const { namespace, retention } = this.options.compose;
    return this.#runScript('create-namespace.sh', {
      TEMPORAL_ADDRESS: this.address,
      TEMPORAL_NAMESPACE: namespace,
      TEMPORAL_NAMESPACE_RETENTION: retention,
    });
  }

  validateDynamicConfig() {
    const { binaries, compose } = this.options;
    const { status, stdout, stderr } = spawnSync(binaries.server, ['validate-dynamic-config', compose.dynamicConfig], {
      encoding: 'utf8',
    });
    // A misspelt key is only a warning to the server.
    if (status !== 0 || /error:|warning:/.test(stdout)) throw new Error(`${stdout}${stderr}`);
  }

  async start() {
    this.#spawn();
    const deadline = Date.now() + startTimeoutMs;
    while (Date.now() < deadline) {
      if (this.#child.exitCode !== null)
        throw new Error(`The Temporal server ended while it started:\n${this.logTail()}`);
      if (await this.isHealthy()) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`The Temporal server did not answer within ${startTimeoutMs / 1_000} s:\n${this.logTail()}`);
  }

  /** What the container's health check asks. */
  async isHealthy() {
    try {
      return (await fetch(this.healthUrl, { signal: AbortSignal.timeout(2_000) })).ok;
    } catch {
      return false;
    }
  }

  #spawn() {
    const { binaries, compose, database, ports, workDir } = this.options;
    const log = openSync(this.logFile, 'a');
    const child = spawn(binaries.server, ['start'], {
      cwd: workDir,
      detached: true,
      stdio: ['ignore', log, log],
      env: {
        PATH: process.env.PATH,
        ...compose.temporalEnvironment,
        POSTGRES_SEEDS: database.host,
        DB_PORT: String(database.port),
        POSTGRES_USER: database.user,
        POSTGRES_PWD: database.password,
        BIND_ON_IP: '127.0.0.1',
        TEMPORAL_BROADCAST_ADDRESS: '127.0.0.1',
        DYNAMIC_CONFIG_FILE_PATH: compose.dynamicConfig,
        FRONTEND_GRPC_PORT: String(ports.frontend),
        FRONTEND_HTTP_PORT: String(ports.http),
        FRONTEND_MEMBERSHIP_PORT: String(ports.frontendMembership),
        HISTORY_GRPC_PORT: String(ports.history),
        HISTORY_MEMBERSHIP_PORT: String(ports.historyMembership),
        MATCHING_GRPC_PORT: String(ports.matching),
        MATCHING_MEMBERSHIP_PORT: String(ports.matchingMembership),
        WORKER_GRPC_PORT: String(ports.worker),
        WORKER_MEMBERSHIP_PORT: String(ports.workerMembership),
      },
    });
    closeSync(log);
    this.#child = child;
    writeFileSync(this.pidFile, String(child.pid));
    child.once('exit', () => {
      if (!this.#stopping) this.#restart = setTimeout(() => this.#spawn(), restartAfterMs);
    });
  }

  async stop() {
    this.#stopping = true;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), stopGraceMs);
    await ended;
    clearTimeout(late);
  }

  logTail() {
    try {
      const lines = readFileSync(this.logFile, 'utf8').trimEnd().split('\n');
      return lines
        .slice(-15)
        .map((line) => line.replace(/,"(logging-call-at|stacktrace)":"(\\.|[^"\\])*"/g, ''))
        .join('\n');
    } catch {
      return '';
    }
  }
}

const listeners = [
  'frontend',
  'http',
  'frontendMembership',
  'history',
  'historyMembership',
  'matching',
  'matchingMembership',
  'worker',
  'workerMembership',
];

/**
 * A free port for each thing the server listens on. Its table of members keeps ports in a signed smallint, and below the
 * range of outgoing connections nobody takes them while the server restarts.
 */
export async function findTemporalPorts() {
  const [lowest, highest] = [20_000, 32_000];
  const ports = {};
  for (
    let port = lowest + Math.floor(Math.random() * (highest - lowest));
    listeners.some((name) => !ports[name]);
    port++
  ) {
    if (port > highest) port = lowest;
    if (await isFree(port)) ports[listeners.find((name) => !ports[name])] = port;
  }
  return ports;
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
