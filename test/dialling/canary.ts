import { networkInterfaces } from 'node:os';
import { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, vi } from 'vitest';
import { type RawEndpoint, answer, startRawEndpoint } from '../support/raw-endpoint.js';

export const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ address }) => address === '::1'),
);

export interface Canary {
  readonly port: number;
  /** Connections that arrived, on whatever address of this machine. */
  readonly connections: number;
  /** Sockets of this process that set out for anywhere, arrived or not, since the test began. */
  readonly dials: number;
}

/** `meant`: calls by which a test shows that the canary sees them. */
const noCounts = { judged: 0, called: 0, meant: 0 };

/**
 * Listens on every address of this machine at once and watches every socket of this process, so that a call to an address
 * inside is seen even where nobody would answer it. Prints at the end how much silence it has heard.
 */
export function useCanary(what: string): Canary & Record<keyof typeof noCounts, () => void> {
  const counts = { ...noCounts };
  let dials = 0;
  let endpoint: RawEndpoint;
  const connect = vi.spyOn(Socket.prototype, 'connect');
  beforeAll(async () => {
    endpoint = await startRawEndpoint((socket) => socket.write(answer('200 OK')), { host: hasIpv6 ? '::' : '0.0.0.0' });
  });
  afterEach(() => {
    dials += connect.mock.calls.length;
    connect.mockClear();
  });
  afterAll(async () => {
    const { connections } = endpoint;
    await endpoint.close();
    const { judged, called, meant } = counts;
    process.stdout.write(
      `dialling, ${what}: ${judged} judged, ${called} called, ${dials} sockets opened; ` +
        `${connections - meant} connections at the canary, and ${meant} that were meant for it\n`,
    );
  });
  return {
    get port() {
      return endpoint.port;
    },
    get connections() {
      return endpoint.connections;
    },
    get dials() {
      return connect.mock.calls.length;
    },
    judged: () => void (counts.judged += 1),
    called: () => void (counts.called += 1),
    meant: () => void (counts.meant += 1),
  };
}

/** Everything that Posthorn sends to somebody else's address: deliveries, challenges and pings by POST, handshakes by OPTIONS. */
export const calls = [
  { call: 'a delivery', method: 'POST', body: '{"delivery_id":"whd_1","type":"a.b","data":{}}' },
  { call: 'a challenge', method: 'POST', body: '{"type":"webhook.verification","data":{"challenge":"c"}}' },
  { call: 'a ping', method: 'POST', body: '{"type":"webhook.ping","data":{}}' },
  { call: 'a handshake', method: 'OPTIONS', body: null },
] as const;

export type Call = (typeof calls)[number];

/** The part of a request that differs between the kinds of call. */
export const asRequest = ({ method, body }: Call) => ({
  method,
  headers:
    method === 'OPTIONS' ? { 'WebHook-Request-Origin': 'posthorn.test' } : { 'Content-Type': 'application/json' },
  body: body === null ? null : Buffer.from(body),
});
