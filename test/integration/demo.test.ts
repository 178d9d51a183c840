import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PosthornClient, type Attempt } from '../../examples/demo/posthorn-client.js';
import { readSettings } from '../../examples/demo/settings.js';
import { playStory } from '../../examples/demo/story.js';
import { buildAttemptRequest } from '../../src/delivery/attempt-request.js';
import { newId } from '../../src/security/new-id.js';
import { generateSecret } from '../../src/security/signing-secret.js';

/** The few calls that the demo makes, kept in memory, so that its own logic can be seen to work, and to complain. */
class StubApi {
  readonly endpoints = new Map<
    string,
    { id: string; url: string; events: string[]; secret: string; waits: number[] }
  >();
  readonly deliveries = new Map<string, StubDelivery>();
  readonly #server: Server;
  /** What the stub does wrong. */
  fault: 'wrong_signature' | 'no_redelivery' | 'bad_key' | null = null;

  constructor() {
    this.#server = createServer((request, response) => {
      void this.#answer(request).then(([status, body]) =>
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body)),
      );
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    for (const delivery of this.deliveries.values()) clearTimeout(delivery.timer);
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage): Promise<[number, unknown]> {
    const url = new URL(request.url ?? '/', 'http://stub');
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as Record<string, unknown>;
    if (this.fault === 'bad_key' || request.headers.authorization !== 'Bearer phk_stub') return [401, {}];
    const [, , resource, id = '', action] = url.pathname.split('/');
    const call = `${request.method} ${url.pathname}`;
    if (call === 'POST /v1/webhooks/subscriptions') {
      const { url: target, events, retry_waits_ms: waits } = body;
      const endpoint = {
        id: newId('we_'),
        url: target,
        events,
        waits,
        secret: generateSecret(),
      } as never as EndpointRow;
      this.endpoints.set(endpoint.id, endpoint);
      return [201, { id: endpoint.id, secret: endpoint.secret, status: 'active' }];
    }
    if (request.method === 'DELETE') return [this.endpoints.delete(action ?? '') ? 204 : 404, null];
    if (call === 'POST /v1/events') {
      const { type, data } = body as { type: string; data: unknown };
      const wanted = [...this.endpoints.values()].filter(({ events }) => events.includes(type));
      const made = wanted.map((endpoint) => new StubDelivery(endpoint, type, JSON.stringify(data), this));
      for (const delivery of made) this.deliveries.set(delivery.id, delivery);
      for (const delivery of made) void delivery.attempt();
      const deliveries = made.map(({ id, endpoint }) => ({ id, endpoint_id: endpoint.id, status: 'pending' }));
      return [202, { id: newId('evt_'), deliveries }];
    }
    if (resource !== 'webhook-deliveries') return [404, { code: 'not_found' }];
    if (id === '') {
      const { status, endpoint_id: endpointId } = Object.fromEntries(url.searchParams);
      const all = [...this.deliveries.values()];
      return [
        200,
        { data: all.filter((d) => d.status === status && d.endpoint.id === endpointId).map((d) => d.view()) },
      ];
    }
    const delivery = this.deliveries.get(id);
    if (!delivery) return [404, { code: 'not_found' }];
    if (action === 'attempts') return [200, { data: delivery.attempts }];
    if (action === 'redeliver' && this.fault === 'no_redelivery') return [409, { code: 'not_now' }];
    if (action === 'redeliver') void delivery.redeliver();
    return [200, delivery.view()];
  }
}

type EndpointRow = StubApi['endpoints'] extends Map<string, infer T> ? T : never;

class StubDelivery {
  readonly id = newId('whd_');
  readonly attempts: Attempt[] = [];
  status = 'pending';
  #round = 1;
  #spent = 0;
  timer: NodeJS.Timeout | undefined;

  constructor(
    readonly endpoint: EndpointRow,
    private readonly type: string,
    private readonly data: string,
    private readonly api: StubApi,
  ) {}

  view() {
    return {
      id: this.id,
      status: this.status,
      reason: this.status === 'failed' ? 'attempts_exhausted' : 'attempt_failed',
      round: this.#round,
      attempt_count: this.attempts.length,
      next_attempt_at: null,
      last_status_code: this.attempts.at(-1)?.status_code ?? null,
      last_error: null,
    };
  }

  redeliver(): Promise<void> {
    clearTimeout(this.timer);
    if (this.status !== 'retrying') {
      this.status = 'pending';
      this.#round++;
      this.#spent = 0;
    }
    return this.attempt();
  }

  async attempt(): Promise<void> {
    const number = this.attempts.length + 1;
    const started = new Date().toISOString();
    const secret = this.api.fault === 'wrong_signature' ? 'whsec_other' : this.endpoint.secret;
    const { url, headers, body } = buildAttemptRequest({
      delivery: {
        id: this.id,
        eventId: 'e',
        tenantId: 'default',
        type: this.type,
        createdAt: started,
        apiVersion: null,
        source: null,
        subject: null,
        data: this.data,
      },
      endpoint: {
        url: this.endpoint.url,
        envelope: 'default',
        signature: 'default',
        payload: 'full',
        headers: {},
        timeoutMs: 1_000,
      },
      secrets: [secret],
      attemptNumber: number,
      nowMs: Date.now(),
    });
    const response = await fetch(url, { method: 'POST', headers, body: new Uint8Array(body ?? []) });
    await response.text();
    const status_code = response.status;
    this.attempts.push({
      number,
      round: this.#round,
      started_at: started,
      duration_ms: 1,
      status_code,
      error_code: null,
    });
    const wait = this.endpoint.waits[this.#spent++];
    if (response.ok) this.status = 'succeeded';
    else if (wait === undefined) this.status = 'failed';
    else {
      this.status = 'retrying';
      this.timer = setTimeout(() => void this.attempt(), Math.min(wait, 60_000) / 20);
    }
  }
}

let api: StubApi;
let baseUrl: string;
let lines: string[];

beforeEach(async () => {
  lines = [];
  api = new StubApi();
  baseUrl = await api.start();
});

afterEach(async () => {
  await api.stop();
});

function play(signal = new AbortController().signal): Promise<void> {
  const client = new PosthornClient(baseUrl, 'phk_stub', signal);
  return playStory({ client, signal, print: (line) => lines.push(line) });
}

describe('the demo', () => {
  it('plays its story, a line a step, and removes what it made', async () => {
    await play();
    expect(lines.filter((line) => line.startsWith('✓')).map((line) => line.slice(2, 18).trim())).toEqual([
      'set up',
      'deliver',
      'redeliver',
      'break the secret',
      'repair it',
      'endpoint down',
      'it comes back',
    ]);
    expect(lines.filter((line) => line.includes('Timeline'))).toHaveLength(2);
    expect(lines.filter((line) => /round 1 {2}attempt \d {2}503/.test(line))).toHaveLength(3);
    expect(api.endpoints.size).toBe(0);
  });

  it('says what it saw when a signature is wrong, and still removes what it made', async () => {
    api.fault = 'wrong_signature';
    const stopped = new AbortController();
    const playing = play(stopped.signal);
    await expect.poll(() => api.deliveries.values().next().value?.status).toBe('retrying');
    stopped.abort();
    await expect(playing).rejects.toThrow();
    expect(lines.map((line) => line.slice(2, 8))).toEqual(['set up']);
    expect(api.endpoints.size).toBe(0);
  });

  it('passes on what the API answered', async () => {
    api.fault = 'no_redelivery';
    await expect(play()).rejects.toThrow(/redeliver answered 409: .*not_now/);
    expect(api.endpoints.size).toBe(0);
  });

  it('says what to do about a refused key', async () => {
    api.fault = 'bad_key';
    await expect(play()).rejects.toThrow(/refused the API key \(401\)\. Set POSTHORN_API_KEY/);
  });

  it('says what to do when nothing answers', async () => {
    await api.stop();
    await expect(play()).rejects.toThrow(/does not answer at .*npm start/);
    await api.start();
  });
});

describe("the demo's settings", () => {
  it('prefer the key of their own, and follow the port', () => {
    expect(
      readSettings({ POSTHORN_API_KEY: 'a', POSTHORN_BOOTSTRAP_API_KEY: 'b', POSTHORN_HTTP_PORT: '9000' }),
    ).toEqual({
      baseUrl: 'http://127.0.0.1:9000',
      apiKey: 'a',
    });
    expect(readSettings({ POSTHORN_BOOTSTRAP_API_KEY: 'b', POSTHORN_API_URL: 'http://[::1]:1/' })).toEqual({
      baseUrl: 'http://[::1]:1',
      apiKey: 'b',
    });
  });

  it('say where the key was looked for', () => {
    expect(() => readSettings({ POSTHORN_DATA_DIR: '/nonexistent' })).toThrow(/\/nonexistent\/api-key .*npm start/);
  });
});
