import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { inject } from 'vitest';
import { findFreePorts } from '../../src/embedded/ports.js';
import { readProcess } from '../../src/embedded/process-identity.js';
import { createTestDatabase } from './engines.js';
import { ApiClient, spawnPosthorn, testEnv, until } from './posthorn.js';
import './setup-production-server.js';

export type PosthornProcess = ChildProcess & { output: () => string };
export interface ApiProcess {
  readonly process: PosthornProcess;
  readonly client: ApiClient;
}

const healthcheckPath = fileURLToPath(new URL('../../deploy/healthcheck.mjs', import.meta.url));

/** API and worker as two processes each, on a database of their own: production without containers. */
export class ProductionProcesses {
  readonly apis: ApiProcess[] = [];
  readonly workers: PosthornProcess[] = [];
  private readonly started: PosthornProcess[] = [];

  private constructor(
    readonly namespace: string,
    private readonly env: Record<string, string>,
  ) {}

  /** An empty set: nothing runs yet. */
  static async prepare(
    options: { namespace?: string; extra?: Record<string, string> } = {},
  ): Promise<ProductionProcesses> {
    const server = inject('productionServer');
    const namespace = options.namespace ?? server.namespace;
    return new ProductionProcesses(
      namespace,
      testEnv({
        databaseUrl: await createTestDatabase(server.postgresUrl),
        temporalAddress: server.temporalAddress,
        namespace,
        ...(options.extra ? { extra: options.extra } : {}),
      }),
    );
  }

  /** Two of each, all at the same moment: the first start on an empty database is a race too. */
  static async start(options: { extra?: Record<string, string> } = {}): Promise<ProductionProcesses> {
    const all = await ProductionProcesses.prepare(options);
    const workers = [all.startWorker(), all.startWorker()];
    const apis = [all.startApi(), all.startApi()];
    await Promise.all([...workers, ...apis]);
    return all;
  }

  /** Resolves once it can accept events. */
  async startApi(): Promise<ApiProcess> {
    const [port] = await findFreePorts(1);
    const env = { ...this.env, POSTHORN_HTTP_HOST: '127.0.0.1', POSTHORN_HTTP_PORT: String(port) };
    const process = this.spawn('main', env);
    const api = { process, client: new ApiClient(`http://127.0.0.1:${port}`) };
    await until(
      `the API answers\n${process.output()}`,
      async () => {
        if (process.exitCode !== null) throw new Error(`the API has ended:\n${process.output()}`);
        const { status, body } = await api.client.get('/readyz');
        return status === 200 && body.temporal === 'ok';
      },
      60_000,
    );
    this.apis.push(api);
    return api;
  }

  /** Resolves once its container would be healthy, which means that it polls. */
  async startWorker(): Promise<PosthornProcess> {
    const worker = this.spawn('worker', { ...this.env, POSTHORN_LOG_LEVEL: 'info' });
    await until(
      'the worker polls',
      async () => {
        if (worker.exitCode !== null) throw new Error(`the worker has ended:\n${worker.output()}`);
        return worker.output().includes('workers poll');
      },
      60_000,
    );
    this.workers.push(worker);
    return worker;
  }

  /** Starts a process without waiting for anything. */
  spawn(entry: 'main' | 'worker', env: Record<string, string> = this.env): PosthornProcess {
    const child = spawnPosthorn(entry, env);
    this.started.push(child);
    const { pid } = child;
    if (pid === undefined) throw new Error(`${entry} could not be started`);
    writeFileSync(join(inject('productionServer').processDir, String(pid)), readProcess(pid)?.startedAt ?? '');
    return child;
  }

  /** What the container's health check says. */
  healthcheck(kind: 'api' | 'worker', extra: Record<string, string> = {}): { code: number | null; text: string } {
    const { status, stdout, stderr } = spawnSync(process.execPath, [healthcheckPath, kind], {
      env: { ...this.env, ...extra },
      encoding: 'utf8',
    });
    return { code: status, text: stdout + stderr };
  }

  /** kill -9. */
  async kill(child: PosthornProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** As `docker compose stop` does; answers the exit codes. */
  async stop(): Promise<(number | null)[]> {
    const running = this.started.filter((child) => child.exitCode === null && child.signalCode === null);
    return Promise.all(
      running.map(async (child) => {
        const exited = once(child, 'exit');
        child.kill('SIGTERM');
        const late = setTimeout(() => child.kill('SIGKILL'), 60_000);
        const [code] = (await exited) as [number | null];
        clearTimeout(late);
        return code;
      }),
    );
  }
}

/** Ends the Temporal server, and resolves when its successor answers. */
export async function restartTemporal(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const { temporalPidFile, temporalHealthUrl } = inject('productionServer');
  const before = readFileSync(temporalPidFile, 'utf8');
  process.kill(Number(before), signal);
  await until(
    'another Temporal server answers',
    async () => readFileSync(temporalPidFile, 'utf8') !== before && (await fetch(temporalHealthUrl)).ok,
    90_000,
  );
}

/** The Temporal CLI, as an operator would use it. */
export function runTemporalCli(args: readonly string[]): string {
  const { cli, temporalAddress } = inject('productionServer');
  return execFileSync(cli, [...args, '--address', temporalAddress], { encoding: 'utf8' });
}

export async function withTemporalClient<T>(namespace: string, use: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address: inject('productionServer').temporalAddress });
  try {
    return await use(new Client({ connection, namespace }));
  } finally {
    await connection.close();
  }
}
