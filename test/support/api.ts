import { type IncomingMessage, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Client } from 'pg';
import { inject } from 'vitest';
import { ensureServiceKey } from '../../src/api-keys.js';
import { loadConfig } from '../../src/config/config.js';
import { Core } from '../../src/core.js';
import { createHttpApp } from '../../src/http/http-app.js';
import { hashApiKey } from '../../src/security/api-key.js';
import { newId } from '../../src/security/new-id.js';
import { createLogger, type Logger } from '../../src/telemetry/logger.js';
import { createTestDatabase } from './engines.js';
import { ApiClient, testEnv, testKey } from './posthorn.js';

export interface RunningApi {
  readonly core: Core;
  readonly app: NestFastifyApplication;
  readonly api: ApiClient;
  readonly port: number;
  readonly databaseUrl: string;
  /** Rows of a statement, over the API's own pool. */
  sql<T = Record<string, unknown>>(statement: string, values?: unknown[]): Promise<T[]>;
  /** A client with a new key of this tenant; null: a service key. */
  tenant(tenantId: string | null): Promise<ApiClient>;
  stop(): Promise<void>;
}

/** The API alone: real Postgres, and a Temporal that nobody answers for. */
export async function startApi(
  options: { extra?: Record<string, string>; databaseUrl?: string; log?: Logger } = {},
): Promise<RunningApi> {
  const databaseUrl = options.databaseUrl ?? (await createTestDatabase(inject('postgresUrl')));
  const config = loadConfig(
    'api',
    testEnv({ databaseUrl, temporalAddress: '127.0.0.1:1', namespace: 'none', extra: options.extra ?? {} }),
  );
  const log = options.log ?? createLogger('error', 'stderr');
  const core = new Core({
    config,
    databaseUrl,
    temporalAddress: config.temporal.address!,
    keyRing: config.encryptionKeys!,
    connection: 'plain',
    log,
  });
  await core.start();
  await ensureServiceKey(core, config.bootstrapApiKey);
  const app = await createHttpApp(core);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.getHttpServer().address() as AddressInfo;
  const api = new ApiClient(`http://127.0.0.1:${port}`);
  let keys = 0;
  return {
    core,
    app,
    api,
    port,
    databaseUrl,
    sql: <T>(statement: string, values: unknown[] = []) => core.db.query<T[]>(statement, values),
    async tenant(tenantId) {
      const key = `${testKey}-${tenantId ?? 'service'}-${++keys}`;
      await core.apiKeys.add({ id: newId('key_'), tenantId, name: `key of ${tenantId}`, hash: hashApiKey(key) });
      return api.withKey(key);
    },
    async stop() {
      await app.close();
      await core.stopStarting();
      await core.close();
    },
  };
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  // Tests read many shapes; their expectations are the check.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Uint8Array | undefined;
}

/** A request as it is given: fetch would tidy up paths, and refuse some headers and bodies. */
export function rawRequest(port: number, { method, path, headers = {}, body }: RawRequest): Promise<RawAnswer> {
  // For some methods Node would leave it out, and the body would be read as the next request.
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const all = { ...length, ...headers };
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers: all, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parsed(text) });
      });
    });
    // A body that is refused before its end breaks the pipe after the answer.
    request.on('error', (error: NodeJS.ErrnoException) => error.code !== 'EPIPE' && reject(error));
    request.end(body);
  });
}

/** Sends bytes as they are, HTTP or not, and answers all that comes back. */
export function rawBytes(port: number, bytes: string | Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
  });
}

/** Runs with a connection of its own: what it sees is committed. */
export async function withConnection<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Every text of every table, in one: to look for what must not be there. */
export function dumpDatabase(url: string): Promise<string> {
  return withConnection(url, async (client) => {
    const { rows: tables } = await client.query<{ name: string }>(
      `select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'`,
    );
    const parts: string[] = [];
    for (const { name } of tables) {
      const { rows } = await client.query<{ text: string }>(`select t::text as text from ${name} t`);
      parts.push(...rows.map(({ text }) => `${name} ${text}`));
    }
    return parts.join('\n');
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
