import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Connection } from '@temporalio/client';
import { findFreePorts } from '../../src/embedded/ports.js';
import { pause } from '../../src/pause.js';
import { createDatabase, type Engines } from '../engines/engines.js';
import type { Receiver } from '../receiver/receiver.js';
import type { Target } from '../load/generator-process.js';
import type { LoadOverHttp } from './over-http.js';
import { nodeOptions } from '../child.js';
import { type Subject, titles } from './subject.js';

export type Lane = 'default' | 'express';

export interface PosthornSubject extends Subject {
  /** Events of this type go to a paused endpoint alone. */
  readonly pausedType: string;
  readonly target: Target;
}

const startTimeoutMs = 60_000;
const standalone = fileURLToPath(new URL('../../src/standalone.js', import.meta.url));

/** This build knows no such lane. */
export class NoSuchLaneError extends Error {
  override readonly name = 'NoSuchLaneError';
}

/** API and worker in one process, as `npm start` runs them, on the run's engines with a database and a namespace of its own. */
export async function startPosthorn(options: {
  readonly lane: Lane;
  readonly engines: Engines;
  readonly receiver: Receiver;
  readonly http: LoadOverHttp;
  readonly endpoints: number;
  /** Each of its threads writes a .cpuprofile there when it ends. */
  readonly profileDir?: string | undefined;
}): Promise<PosthornSubject> {
  const { lane, engines, receiver, http } = options;
  const databaseUrl = await createDatabase(engines, `bench_${lane}`);
  const namespace = `bench-${lane}`;
  await createNamespace(engines.temporalAddress, namespace);
  const dataDir = join(engines.workDir, `posthorn-${lane}`);
  mkdirSync(dataDir);
  const [port] = await findFreePorts(1);
  const apiKey = randomBytes(18).toString('hex');
  const profiling = options.profileDir ? ['--cpu-prof', `--cpu-prof-dir=${options.profileDir}`] : [];
  const child = spawn(process.execPath, [...nodeOptions, ...profiling, standalone], {
    env: {
      ...withoutPosthorn(process.env),
      UV_THREADPOOL_SIZE: '32',
      POSTHORN_DATA_DIR: dataDir,
      POSTHORN_HTTP_PORT: String(port),
      POSTHORN_DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: engines.temporalAddress,
      TEMPORAL_NAMESPACE: namespace,
      POSTHORN_SAMPLE_RECEIVER: 'off',
      POSTHORN_VERIFICATION_REQUIRED: 'off',
      POSTHORN_BOOTSTRAP_API_KEY: apiKey,
      POSTHORN_LOG_LEVEL: 'warn',
      ...(lane === 'express' ? { POSTHORN_DELIVERY_FIRST_ATTEMPT: 'express' } : {}),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  for (const output of [child.stdout, child.stderr])
    output.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-20_000)));
  const apiUrl = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGINT');
    const late = setTimeout(() => child.kill('SIGKILL'), 60_000);
    await exited;
    clearTimeout(late);
  };
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(apiUrl + path, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as unknown;
  };
  try {
    const deadline = Date.now() + startTimeoutMs;
    while (!(await isReady(apiUrl))) {
      if (child.exitCode !== null && errors.includes('POSTHORN_DELIVERY_FIRST_ATTEMPT'))
        throw new NoSuchLaneError(`this build of Posthorn has no ${lane} lane`);
      if (Date.now() > deadline || child.exitCode !== null) throw new Error(`Posthorn did not start:\n${errors}`);
      await pause(100);
    }
    const subscribe = async (type: string): Promise<string> => {
      const created = await call('POST', '/v1/webhooks/subscriptions', { url: receiver.url, events: [type] });
      return (created as { id: string }).id;
    };
    const types = Array.from({ length: options.endpoints }, (_, index) => `bench.e${index}`);
    for (const type of types) await subscribe(type);
    const pausedType = 'bench.paused';
    await call('POST', `/v1/webhooks/subscriptions/${await subscribe(pausedType)}/pause`, {});
    const target = { apiUrl, apiKey, types };
    return {
      name: lane,
      title: titles[lane],
      pids: [child.pid!],
      database: `bench_${lane}`,
      namespace,
      pausedType,
      target,
      saturate: (load) => http.saturate(target, load),
      steady: (load) => http.steady(target, load),
      async take() {
        const { data } = (await call('GET', '/v1/webhook-deliveries?limit=20')) as { data: { id: string }[] };
        return { arrivals: await receiver.take(), workflowIds: data.map(({ id }) => id) };
      },
      async stop() {
        await stop();
        // Its log is lines of JSON; what it tells a person while it starts and stops is no news.
        const logged = errors.split('\n').filter((line) => line.startsWith('{'));
        if (logged.length > 0)
          process.stderr.write(
            `${titles[lane]} logged ${logged.length} warnings, the last:\n${logged.slice(-3).join('\n')}\n`,
          );
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What the surroundings set is not to change what is measured. */
function withoutPosthorn(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(POSTHORN|TEMPORAL|OTEL)_/.test(name)));
}

async function isReady(apiUrl: string): Promise<boolean> {
  try {
    const response = await fetch(`${apiUrl}/readyz`);
    return response.ok && ((await response.json()) as { temporal: string }).temporal === 'ok';
  } catch {
    return false;
  }
}

async function createNamespace(address: string, namespace: string): Promise<void> {
  const connection = await Connection.connect({ address });
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    });
    const deadline = Date.now() + 30_000;
    for (;;) {
      try {
        await connection.workflowService.listWorkflowExecutions({ namespace, query: '' });
        return;
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await pause(200);
      }
    }
  } finally {
    await connection.close();
  }
}
