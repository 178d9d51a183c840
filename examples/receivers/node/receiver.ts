/**
 * A webhook receiver as it should be: it verifies the raw body before it parses it, answers at once, and has each delivery's
 * effect only once. Around that core there are a few controls, for this machine only, with which one can watch it and break it:
 *
 *     POST    /hook      where deliveries go
 *     OPTIONS /hook      the handshake of CloudEvents: says who may send, and how much
 *     GET     /stats     what arrived
 *     PUT     /secrets   the secrets it accepts: {"secrets": ["whsec_…"]}, or plain text, one a line
 *     PUT     /mode      how it behaves: {"mode": "ok" | "down" | "error" | "gone" | "busy" | "hang"}
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Inbox, type State } from './inbox.js';
import { parseJson, parseMessage, propertyOf } from './message.js';
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
  /** All POSTs to /hook. */
  readonly requests: number;
  readonly verified: number;
  /** Not verified: 401. */
  readonly rejected: number;
  readonly side_effects: number;
  /** The latest deliveries, by what they are deduplicated on. */
  readonly deliveries: Readonly<Record<string, { readonly requests: number; readonly side_effects: number }>>;
  /** The newest state of each invoice, whatever the order in which its events came. */
  readonly newest: Readonly<Record<string, State>>;
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
/** What this service can take, told in the handshake. */
const allowedRequestsPerMinute = 6_000;

export async function startSampleReceiver({ port, host, secret, log }: SampleReceiverOptions): Promise<SampleReceiver> {
  let secrets: readonly string[] = secret ? [secret] : [];
  let mode: ReceiverMode = 'ok';
  const inbox = new Inbox();
  const counts = { requests: 0, verified: 0, rejected: 0 };

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
    const verification = verifySignature({ body, headers: request.headers, secrets });
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
    const { type, key, at, invoiceId } = message;
    if (key === null) {
      send(response, 400, 'The body is not a delivery');
      return;
    }

    // 3. Store it, then answer: after a 2xx it isn't sent again. What takes longer comes later, in a job of its own, since a slow
    // answer counts as a failure and brings a retry.
    const outcome = inbox.take({ key, type, at, invoiceId });
    log(`${type} ${key}: ${outcome}`);
    send(response, 200, 'ok');
  }

  /** CloudEvents' HTTP webhooks, section 4: a sender asks before it sends. The signature still decides who is believed. */
  function answerHandshake(request: IncomingMessage, response: ServerResponse): void {
    if (mode !== 'ok') {
      misbehave(mode, response);
      return;
    }
    response.setHeader('Allow', 'OPTIONS, POST');
    const origin = request.headers['webhook-request-origin'];
    if (typeof origin === 'string' && /^[A-Za-z0-9.:[\]-]{1,255}$/.test(origin)) {
      log(`allowed ${origin} to send`);
      response.setHeader('WebHook-Allowed-Origin', origin);
      response.setHeader('WebHook-Allowed-Rate', String(allowedRequestsPerMinute));
    }
    response.writeHead(204).end();
  }

  const stats = (): ReceiverStats => ({ ...counts, ...inbox.stats(maxListedDeliveries) });

  async function control(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const call = `${request.method} ${path}`;
    if (call === 'GET /stats') {
      sendJson(response, 200, stats());
      return;
    }
    const body = call === 'PUT /secrets' || call === 'PUT /mode' ? await readBody(request) : null;
    if (body === null) {
      sendJson(response, 404, { error: 'There are POST and OPTIONS /hook, GET /stats, PUT /secrets and PUT /mode' });
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
    const wanted = receiverModes.find((known) => known === propertyOf(parseJson(body), 'mode'));
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
    if (request.method === 'OPTIONS' && path === '/hook') {
      answerHandshake(request, response);
      return;
    }
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

function readSecrets(text: string): readonly string[] | null {
  const given = text.trim().startsWith('{') ? propertyOf(parseJson(Buffer.from(text)), 'secrets') : text.split('\n');
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

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && (address === '::1' || /^(::ffff:)?127\./.test(address));
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(text);
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(value)}\n`);
}
