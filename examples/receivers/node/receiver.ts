/**
 * A webhook receiver as it should be: it verifies the raw body before it parses it, answers at once, and has each delivery's
 * effect only once. Around that core there are a few controls, for this machine only, with which one can watch it and break it:
 *
 *     POST /hook      where deliveries go
 *     GET  /stats     what arrived
 *     PUT  /secrets   the secrets it accepts: {"secrets": ["whsec_…"]}, or plain text, one a line
 *     PUT  /mode      how it behaves: {"mode": "ok" | "down" | "error" | "gone" | "busy" | "hang"}
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SeenDeliveries } from './seen-deliveries.js';
import { verifySignature } from './verify-signature.js';

export const receiverModes = ['ok', 'down', 'error', 'gone', 'busy', 'hang'] as const;
export type ReceiverMode = (typeof receiverModes)[number];

export interface SampleReceiverOptions {
  /** 0 takes a free one. */
  readonly port: number;
  readonly host: string;
  /** Without a secret every request is rejected, until one is set. */
  readonly secret?: string;
  readonly log: (line: string) => void;
}

export interface ReceiverStats {
  /** All requests to /hook. */
  readonly requests: number;
  readonly verified: number;
  /** Not verified: 401. */
  readonly rejected: number;
  readonly side_effects: number;
  /** The latest deliveries, by their id. */
  readonly deliveries: Readonly<Record<string, { readonly requests: number; readonly side_effects: number }>>;
}

export interface SampleReceiver {
  readonly port: number;
  /** The address to subscribe, `http://host:port/hook`. */
  readonly url: string;
  stats(): ReceiverStats;
  setSecrets(secrets: readonly string[]): void;
  setMode(mode: ReceiverMode): void;
  stop(): Promise<void>;
}

const maxBodyBytes = 1024 * 1024;
const maxListedDeliveries = 1_000;

export async function startSampleReceiver({ port, host, secret, log }: SampleReceiverOptions): Promise<SampleReceiver> {
  let secrets: readonly string[] = secret ? [secret] : [];
  let mode: ReceiverMode = 'ok';
  const seen = new SeenDeliveries();
  const counts = { requests: 0, verified: 0, rejected: 0, sideEffects: 0 };

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    counts.requests++;
    if (mode !== 'ok') {
      misbehave(mode, response);
      return;
    }
    const body = await readBody(request);
    if (body === null) {
      send(response, 413, 'The body is too large');
      return;
    }

    // 1. Verify the bytes as they came. Nothing in them is to be trusted, or even parsed, before.
    const verification = verifySignature({ body, header: headerOf(request, 'webhook-signature'), secrets });
    if (!verification.ok) {
      counts.rejected++;
      log(`rejected a request: ${verification.reason}`);
      send(response, 401, 'The signature is not valid');
      return;
    }
    counts.verified++;
    const message = parseMessage(body);
    if (!message) {
      send(response, 400, 'The body is not a delivery');
      return;
    }

    // 2. Posthorn asks whether this address wants its deliveries; echoing the challenge says yes.
    if (message.type === 'webhook.verification' && message.challenge !== null) {
      log('answered a verification challenge');
      send(response, 200, message.challenge);
      return;
    }
    if (message.type === 'webhook.ping') {
      send(response, 200, 'ok');
      return;
    }
    if (message.deliveryId === null) {
      send(response, 400, 'The body is not a delivery');
      return;
    }

    // 3. Note the delivery, answer, and only then work: a slow answer counts as a failure and brings a retry.
    // Your own service should have stored the event, in a queue or a table, before it answers.
    const { isNew, entry } = seen.note(message.deliveryId);
    send(response, 200, 'ok');
    if (!isNew) {
      log(`${message.type} ${message.deliveryId}: request ${entry.requests}, handled already`);
      return;
    }
    setImmediate(() => {
      entry.sideEffects++;
      counts.sideEffects++;
      log(`${message.type} ${message.deliveryId}: handled`);
    });
  }

  const stats = (): ReceiverStats => ({
    requests: counts.requests,
    verified: counts.verified,
    rejected: counts.rejected,
    side_effects: counts.sideEffects,
    deliveries: Object.fromEntries(
      seen
        .latest(maxListedDeliveries)
        .map(({ id, requests, sideEffects }) => [id, { requests, side_effects: sideEffects }]),
    ),
  });

  async function control(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const call = `${request.method} ${path}`;
    if (call === 'GET /stats') {
      sendJson(response, 200, stats());
      return;
    }
    const body = call === 'PUT /secrets' || call === 'PUT /mode' ? await readBody(request) : null;
    if (body === null) {
      sendJson(response, 404, { error: 'There are POST /hook, GET /stats, PUT /secrets and PUT /mode' });
      return;
    }
    const text = body.toString('utf8');
    if (path === '/secrets') {
      const given = readSecrets(text);
      if (given === null) {
        sendJson(response, 400, { error: 'Send {"secrets": ["whsec_…"]}, or the secrets as plain text, one a line' });
        return;
      }
      secrets = given;
      log(`accepts ${secrets.length} secret${secrets.length === 1 ? '' : 's'} now`);
      sendJson(response, 200, { secrets: secrets.length });
      return;
    }
    const wanted = receiverModes.find((known) => known === propertyOf(parseJson(text), 'mode'));
    if (wanted === undefined) {
      sendJson(response, 400, { error: `Send {"mode": …} with one of ${receiverModes.join(', ')}` });
      return;
    }
    mode = wanted;
    log(`mode is ${mode} now`);
    sendJson(response, 200, { mode });
  }

  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const isHook = request.method === 'POST' && path === '/hook';
    if (!isHook && !isLoopback(request.socket.remoteAddress)) {
      send(response, 404, 'Not found');
      return;
    }
    (isHook ? receive(request, response) : control(request, response, path)).catch((error: unknown) => {
      log(`a request failed: ${String(error)}`);
      if (!response.headersSent) send(response, 500, 'Internal error');
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const actualPort = (server.address() as AddressInfo).port;

  return {
    port: actualPort,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actualPort}/hook`,
    stats,
    setSecrets: (given) => void (secrets = [...given]),
    setMode: (given) => void (mode = given),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        // Answers under way get a moment; what hangs is cut off.
        setTimeout(() => server.closeAllConnections(), 500).unref();
      }),
  };
}

function misbehave(mode: Exclude<ReceiverMode, 'ok'>, response: ServerResponse): void {
  switch (mode) {
    case 'down':
      return send(response, 503, 'Down for maintenance');
    case 'error':
      return send(response, 500, 'Something broke');
    case 'gone':
      return send(response, 410, 'This endpoint is gone: stop sending');
    case 'busy':
      response.setHeader('Retry-After', '2');
      return send(response, 429, 'Too many requests');
    case 'hang':
      return; // Accepts the request and never answers it.
  }
}

interface Message {
  readonly type: string;
  readonly deliveryId: string | null;
  readonly challenge: string | null;
}

function parseMessage(body: Buffer): Message | null {
  const parsed = parseJson(body.toString('utf8'));
  const type = propertyOf(parsed, 'type');
  if (typeof type !== 'string') return null;
  const deliveryId = propertyOf(parsed, 'delivery_id');
  const challenge = propertyOf(propertyOf(parsed, 'data'), 'challenge');
  return {
    type,
    deliveryId: typeof deliveryId === 'string' && deliveryId !== '' ? deliveryId : null,
    challenge: typeof challenge === 'string' ? challenge : null,
  };
}

function readSecrets(text: string): readonly string[] | null {
  const given = text.trim().startsWith('{') ? propertyOf(parseJson(text), 'secrets') : text.split('\n');
  if (!Array.isArray(given) || !given.every((item): item is string => typeof item === 'string')) return null;
  return given.map((item) => item.trim()).filter((item) => item !== '');
}

/** The body's bytes, or null when there are more than we read. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= maxBodyBytes) chunks.push(chunk);
  }
  return size <= maxBodyBytes ? Buffer.concat(chunks) : null;
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && (address === '::1' || /^(::ffff:)?127\./.test(address));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function propertyOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(text);
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(value)}\n`);
}
