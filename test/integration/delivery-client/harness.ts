import { afterEach } from 'vitest';
import { parseCidr } from '../../../src/config/cidr.js';
import {
  DeliveryClient,
  type DeliveryClientOptions,
  type OutboundAnswer,
  type OutboundRequest,
} from '../../../src/delivery/delivery-client.js';
import { startRawEndpoint, type Misbehave, type RawEndpoint } from '../../support/raw-endpoint.js';

const cleanUps: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()));
});

const toLoopback = async () => [{ address: '127.0.0.1', family: 4 }];

/** Every name resolves to 127.0.0.1, and loopback is excepted, unless a test says otherwise. */
export function newClient(options: Partial<DeliveryClientOptions> = {}): DeliveryClient {
  const client = new DeliveryClient({
    allowHttp: 'on',
    allowedCidrs: [parseCidr('127.0.0.0/8')],
    resolve: toLoopback,
    ...options,
  });
  cleanUps.push(() => client.close());
  return client;
}

export async function newEndpoint(
  misbehave: Misbehave,
  options: Parameters<typeof startRawEndpoint>[1] = {},
): Promise<RawEndpoint> {
  const endpoint = await startRawEndpoint(misbehave, options);
  cleanUps.push(() => endpoint.close());
  return endpoint;
}

export function post(url: string, changes: Partial<OutboundRequest> = {}): OutboundRequest {
  return {
    method: 'POST',
    url,
    headers: { 'Content-Type': 'application/json' },
    body: Buffer.from('{"a":1}'),
    timeoutMs: 5_000,
    ...changes,
  };
}

/** Sends one request to an endpoint that misbehaves in one way. */
export async function sendTo(
  misbehave: Misbehave,
  changes: Partial<OutboundRequest> = {},
): Promise<{ answer: OutboundAnswer; endpoint: RawEndpoint }> {
  const endpoint = await newEndpoint(misbehave);
  const answer = await newClient().send(post(`http://receiver.test:${endpoint.port}/hook`, changes));
  return { answer, endpoint };
}
