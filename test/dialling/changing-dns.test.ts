import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/config/cidr.js';
import { judgeUrl } from '../../src/delivery/address-policy.js';
import { resolveBySystem, type Resolve } from '../../src/delivery/resolver.js';
import { answer as ok, type Misbehave } from '../support/raw-endpoint.js';
import { newClient, newEndpoint, post } from '../integration/delivery-client/harness.js';
import { asRequest, calls, useCanary } from './canary.js';

const canary = useCanary('changing names');

/** Stands for a public address: excepted, whereas the rest of loopback is not. */
const outside = '127.0.0.2';
const policy = { allowHttp: 'on', allowedCidrs: [parseCidr(`${outside}/32`)] } as const;
const inside = ['127.0.0.1', '::1', '0.0.0.0', '::', '::ffff:127.0.0.1', '10.0.0.1', '169.254.169.254'] as const;
const refused = { statusCode: null, errorCode: 'blocked_address', dialled: false, remoteAddress: null };

const answering = (...addresses: string[]) => addresses.map((address) => ({ address, family: 0 }));
const newOutside = (misbehave: Misbehave = (socket) => socket.write(ok('200 OK'))) =>
  newEndpoint(misbehave, { host: outside });

/** Answers each lookup with the next of the lists, the last one for ever. */
function changing(...lists: string[][]) {
  let asked = 0;
  const resolve: Resolve = async () => answering(...(lists[Math.min(asked++, lists.length - 1)] ?? []));
  return { resolve, asked: () => asked };
}

describe.each(inside)('a name that comes to %s', (address) => {
  it.each([
    ['alone', [address]],
    ['before a public address', [address, outside]],
    ['after a public address', [outside, address]],
    ['among many', [outside, outside, address, outside]],
  ])('%s is refused by every kind of call', async (_how, list) => {
    const before = canary.connections;
    const url = `http://shifty.test:${canary.port}/`;
    expect(judgeUrl(url, policy)).toMatchObject({ ok: true });
    canary.judged();
    for (const call of calls) {
      const client = newClient({ ...policy, resolve: async () => answering(...list) });
      expect(await client.send(post(url, asRequest(call)))).toMatchObject(refused);
      canary.called();
    }
    expect(canary.dials).toBe(0);
    expect(canary.connections).toBe(before);
  });

  it('only after it was public is refused, though a connection to the public address is open', async () => {
    const before = canary.connections;
    const endpoint = await newOutside();
    let now = 1_000_000;
    const { resolve, asked } = changing([outside], [address]);
    const client = newClient({ ...policy, resolve, now: () => now });
    const url = `http://shifty.test:${endpoint.port}/`;
    expect(await client.send(post(url))).toMatchObject({ statusCode: 200, remoteAddress: outside });
    now += 5_000;
    for (const call of calls) {
      expect(await client.send(post(url, asRequest(call)))).toMatchObject(refused);
      canary.called();
    }
    expect(asked()).toBe(2);
    expect(endpoint.requests).toHaveLength(1);
    expect(canary.dials).toBe(1);
    expect(canary.connections).toBe(before);
  });

  it('between check and dial, or when it is sent once more, is asked once a request and dialled as it was judged', async () => {
    const before = canary.connections;
    const endpoint = await newOutside((socket, count) => (count === 1 ? socket.write(ok('200 OK')) : socket.destroy()));
    let now = 1_000_000;
    const { resolve, asked } = changing([outside], [outside], [address]);
    const client = newClient({ ...policy, resolve, now: () => now });
    const url = `http://shifty.test:${endpoint.port}/`;
    expect(await client.send(post(url))).toMatchObject({ statusCode: 200, resent: false });
    now += 5_000;
    expect(await client.send(post(url))).toMatchObject({ statusCode: 200, resent: true, remoteAddress: outside });
    canary.called();
    expect(asked()).toBe(2);
    expect(canary.connections).toBe(before);
  });
});

describe('a name of this machine', () => {
  it.each(['localhost', 'LOCALHOST', 'localhost.'])('as %s is refused, resolved by the system', async (host) => {
    const before = canary.connections;
    const client = newClient({ allowHttp: 'on', allowedCidrs: [], resolve: resolveBySystem });
    for (const call of calls) {
      const answer = await client.send(post(`http://${host}:${canary.port}/`, asRequest(call)));
      // Not every system's resolver knows it with a final dot.
      expect(answer.errorCode).toMatch(host.endsWith('.') ? /^(blocked_address|dns_failed)$/ : /^blocked_address$/);
      expect(answer).toMatchObject({ statusCode: null, dialled: false });
      canary.called();
    }
    expect(canary.dials).toBe(0);
    expect(canary.connections).toBe(before);
  });
});

describe('a proxy that the environment names', () => {
  it('is not used: a call goes to the address that was judged', async () => {
    const before = canary.connections;
    const endpoint = await newOutside();
    const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'NODE_USE_ENV_PROXY'];
    for (const name of names) process.env[name] = `http://127.0.0.1:${canary.port}`;
    try {
      const client = newClient({ ...policy, resolve: async () => answering(outside) });
      expect(await client.send(post(`http://plain.test:${endpoint.port}/`))).toMatchObject({ statusCode: 200 });
      canary.called();
    } finally {
      for (const name of names) delete process.env[name];
    }
    expect(endpoint.requests).toHaveLength(1);
    expect(canary.connections).toBe(before);
  });
});
