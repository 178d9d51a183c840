import { randomBytes } from 'node:crypto';
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Connection } from '@temporalio/client';
import { inject } from 'vitest';
import './provided.js';
import { loadConfig } from '../../src/config/config.js';
import { Core } from '../../src/core.js';
import { createHttpApp } from '../../src/http/http-app.js';
import { ensureServiceKey } from '../../src/api-keys.js';
import { createLogger } from '../../src/telemetry/logger.js';
import { installRuntime } from '../../src/temporal/worker-host.js';
import { WorkerProcess } from '../../src/worker-process.js';
import { createTestDatabase } from './engines.js';

export const testKey = 'test-service-key-0123456789abcdef';
export const testKeyRing = `k1:${Buffer.alloc(32, 7).toString('base64')}`;

/** Polls until the probe returns something, or fails with what was waited for. Never a bare sleep. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined | null | false>,
  timeoutMs = 20_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let lastError: unknown;
  for (;;) {
    try {
      const found = await probe();
      if (found !== undefined && found !== null && found !== false) return found;
    } catch (error) {
      lastError = error;
    }
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain until ${what}`, { cause: lastError });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Environment of a process under test. */
export function testEnv(options: {
  databaseUrl: string;
  temporalAddress: string;
  namespace: string;
  extra?: Record<string, string>;
}): Record<string, string> {
  return {
    POSTHORN_DATABASE_URL: options.databaseUrl,
    TEMPORAL_ADDRESS: options.temporalAddress,
    TEMPORAL_NAMESPACE: options.namespace,
    POSTHORN_ENCRYPTION_KEYS: testKeyRing,
    POSTHORN_BOOTSTRAP_API_KEY: testKey,
    POSTHORN_DELIVERY_ALLOW_HTTP: 'loopback',
    POSTHORN_DELIVERY_ALLOWED_CIDRS: '127.0.0.0/8,::1/128',
    // Endpoints are active at once, but in the tests that are about verification.
    POSTHORN_VERIFICATION_REQUIRED: 'off',
    POSTHORN_LOG_LEVEL: 'warn',
    ...options.extra,
  };
}

/** A namespace of its own on the run's development server. */
export async function createNamespace(address = inject('temporalAddress')): Promise<string> {
  const namespace = `test-${randomBytes(6).toString('hex')}`;
  const connection = await Connection.connect({ address });
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    });
    await until(
      'the namespace is known',
      async () => (await connection.workflowService.listWorkflowExecutions({ namespace, query: '' }), true),
      30_000,
    );
  } finally {
    await connection.close();
  }
  return namespace;
}

export interface RunningPosthorn {
  readonly core: Core;
  readonly api: ApiClient;
  readonly namespace: string;
  readonly databaseUrl: string;
  readonly worker: WorkerProcess;
  stop(): Promise<void>;
}

let runtimeInstalled = false;

/** API and worker in this process, on the run's engines, with a database and a namespace of its own. */
export async function startPosthorn(
  options: {
    extra?: Record<string, string>;
    worker?: boolean;
    sweeper?: boolean;
    namespace?: string;
    databaseUrl?: string;
  } = {},
): Promise<RunningPosthorn> {
  const databaseUrl = options.databaseUrl ?? (await createTestDatabase(inject('postgresUrl')));
  const namespace = options.namespace ?? (await createNamespace());
  const env = testEnv({
    databaseUrl,
    temporalAddress: inject('temporalAddress'),
    namespace,
    ...(options.extra ? { extra: options.extra } : {}),
  });
  const config = loadConfig('api', env);
  const log = createLogger(config.logLevel, 'stderr');
  if (!runtimeInstalled) installRuntime(log);
  runtimeInstalled = true;
  const core = new Core({
    config,
    databaseUrl,
    temporalAddress: config.temporal.address!,
    keyRing: config.encryptionKeys!,
    connection: 'native',
    log,
  });
  await core.start();
  await ensureServiceKey(core, config.bootstrapApiKey);
  const worker = new WorkerProcess(core, inject('workflowBundle'));
  if (options.worker !== false) await worker.start();
  if (options.sweeper !== false) core.startSweeping();
  const app = await createHttpApp(core);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.getHttpServer().address() as AddressInfo;
  return {
    core,
    namespace,
    databaseUrl,
    worker,
    api: new ApiClient(`http://127.0.0.1:${port}`),
    async stop() {
      await app.close();
      await core.stopStarting();
      await worker.stop();
      await core.close();
    },
  };
}

/** The built API or worker as a process of its own, to be killed. */
export function spawnPosthorn(
  entry: 'main' | 'worker' | 'standalone',
  env: Record<string, string>,
): ChildProcess & { output: () => string } {
  const path = fileURLToPath(new URL(`../../dist/src/${entry}.js`, import.meta.url));
  const child = spawn(process.execPath, [path], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return Object.assign(child, { output: () => output });
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // Tests read many shapes; their expectations are the check.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

/** The public API, as a client would use it. */
export class ApiClient {
  constructor(
    readonly baseUrl: string,
    private readonly key: string = testKey,
  ) {}

  withKey(key: string): ApiClient {
    return new ApiClient(this.baseUrl, key);
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<ApiAnswer> {
    const payload =
      body === undefined ? null : typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
    const response = await fetch(this.baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(payload === null ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(payload === null ? {} : { body: payload as string }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: parsed(text) };
  }

  get = (path: string) => this.call('GET', path);
  post = (path: string, body?: unknown, headers?: Record<string, string>) => this.call('POST', path, body, headers);
  delete = (path: string) => this.call('DELETE', path);

  async createEndpoint(
    url: string,
    events: string[],
    settings: Record<string, unknown> = {},
  ): Promise<{ id: string; secret: string }> {
    const answer = await this.post('/v1/webhooks/subscriptions', { url, events, ...settings });
    if (answer.status !== 201) throw new Error(`endpoint not created: ${answer.text}`);
    return answer.body as { id: string; secret: string };
  }

  async publish(
    type: string,
    data: unknown = {},
  ): Promise<{ id: string; deliveries: { id: string; endpoint_id: string }[] }> {
    const answer = await this.post('/v1/events', { type, data });
    if (answer.status !== 202) throw new Error(`event not accepted: ${answer.status} ${answer.text}`);
    return answer.body as { id: string; deliveries: { id: string; endpoint_id: string }[] };
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async delivery(id: string, wait?: string): Promise<any> {
    return (await this.get(`/v1/webhook-deliveries/${id}${wait ? `?wait=${wait}` : ''}`)).body;
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async attempts(id: string): Promise<any[]> {
    return (await this.get(`/v1/webhook-deliveries/${id}/attempts`)).body.data;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export interface ReceivedRequest {
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly deliveryId: string;
}

export type Answerer = (request: ReceivedRequest, reply: ServerResponse, count: number) => void;

/** An endpoint on loopback that keeps what it receives; `answer` decides what it says, 200 by default. */
export class RecordingReceiver {
  readonly requests: ReceivedRequest[] = [];
  answer: Answerer = (_, reply) => void reply.writeHead(200).end('ok');

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(answer?: Answerer): Promise<RecordingReceiver> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const receiver = new RecordingReceiver(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    if (answer) receiver.answer = answer;
    server.on('request', (request, reply) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const received: ReceivedRequest = {
          at: Date.now(),
          method: request.method ?? '',
          path: request.url ?? '',
          headers: request.headers,
          body: Buffer.concat(chunks),
          deliveryId: String(request.headers['webhook-id'] ?? ''),
        };
        receiver.requests.push(received);
        receiver.answer(received, reply, receiver.requests.length);
      });
    });
    return receiver;
  }

  of(deliveryId: string): ReceivedRequest[] {
    return this.requests.filter((request) => request.deliveryId === deliveryId);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
