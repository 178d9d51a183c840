import { networkInterfaces } from 'node:os';
import { Client } from 'undici';
import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../../src/config/cidr.js';
import { pinnedConnector } from '../../../src/delivery/connection.js';
import { resolveBySystem } from '../../../src/delivery/resolver.js';
import { answer as ok } from '../../support/raw-endpoint.js';
import { newClient, newEndpoint, post } from './harness.js';

const canary = () => newEndpoint((socket) => socket.write(ok('200 OK')));
const addresses = (...list: string[]) => list.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

describe('an inner address', () => {
  it('that is excepted is seen by the canary, so that its silence means something', async () => {
    const endpoint = await canary();
    await newClient().send(post(`http://127.0.0.1:${endpoint.port}/`));
    expect(endpoint.connections).toBe(1);
  });

  it.each([
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '0.0.0.0',
    '0',
    '[::]',
  ])('written as %s meets no socket', async (host) => {
    const endpoint = await canary();
    const answer = await newClient({ allowedCidrs: [] }).send(post(`http://${host}:${endpoint.port}/`));
    expect(answer).toMatchObject({
      statusCode: null,
      errorCode: 'blocked_address',
      dialled: false,
      remoteAddress: null,
    });
    expect(endpoint.connections).toBe(0);
  });

  it.each([
    ['alone', ['127.0.0.1']],
    ['as mapped', ['::ffff:127.0.0.1']],
    ['after a public one', ['127.0.0.2', '127.0.0.1']],
    ['before a public one', ['127.0.0.1', '127.0.0.2']],
    ['with a zone', ['fe80::1%lo']],
    ['that is none', ['localhost']],
  ])('resolved %s refuses the name, and nothing is dialled', async (_how, list) => {
    const endpoint = await canary();
    const client = newClient({ allowedCidrs: [parseCidr('127.0.0.2/32')], resolve: async () => addresses(...list) });
    const answer = await client.send(post(`http://receiver.test:${endpoint.port}/`));
    expect(answer).toMatchObject({
      statusCode: null,
      errorCode: 'blocked_address',
      dialled: false,
      remoteAddress: null,
    });
    // Names are resolved inside our network: what they come to is not told to whoever wrote the URL.
    expect(answer.errorMessage).not.toMatch(/\d+\.\d+/);
    expect(endpoint.connections).toBe(0);
  });

  it('passes through the connect function even as a literal, and is refused there', async () => {
    const endpoint = await canary();
    const url = new URL(`http://127.0.0.1:${endpoint.port}`);
    const dialled: unknown[] = [];
    for (const [allowHttp, allowedCidrs] of [
      ['on', []],
      ['off', [parseCidr('127.0.0.0/8')]],
    ] as const) {
      const policy = { allowHttp, allowedCidrs };
      const connect = pinnedConnector({ url, address: '127.0.0.1' }, { policy, extraCa: [] }, (socket) =>
        dialled.push(socket),
      );
      const client = new Client(url.origin, { connect });
      await expect(client.request({ path: '/', method: 'POST' })).rejects.toMatchObject({
        code: 'POSTHORN_BLOCKED_ADDRESS',
      });
      await client.destroy();
    }
    expect(dialled).toEqual([]);
    expect(endpoint.connections).toBe(0);
  });

  it('is judged on every dial, since a connection dials once', async () => {
    const endpoint = await canary();
    const url = new URL(`http://127.0.0.1:${endpoint.port}`);
    const policy = { allowHttp: 'on', allowedCidrs: [parseCidr('127.0.0.0/8')] } as const;
    const connect = pinnedConnector({ url, address: '127.0.0.1' }, { policy, extraCa: [] });
    const dial = () =>
      new Promise((resolve) => {
        connect({ hostname: url.hostname, protocol: url.protocol, port: url.port }, (error, socket) => {
          socket?.destroy();
          resolve(error);
        });
      });
    expect(await dial()).toBeNull();
    expect(await dial()).toMatchObject({ code: 'POSTHORN_SPENT_CONNECTION' });
    expect(endpoint.connections).toBe(1);
  });

  it('is not reached by a resolver that changes its mind between check and dial', async () => {
    const inner = await canary();
    const outer = await newEndpoint((socket) => socket.write(ok('200 OK', 'outer')), {
      host: '127.0.0.2',
      port: inner.port,
    });
    let now = 1_000_000;
    let calls = 0;
    const client = newClient({
      allowedCidrs: [parseCidr('127.0.0.2/32')],
      now: () => now,
      resolve: async () => addresses(calls++ === 0 ? '127.0.0.2' : '127.0.0.1'),
    });
    const request = post(`http://receiver.test:${inner.port}/`);
    expect(await client.send(request)).toMatchObject({ statusCode: 200, remoteAddress: '127.0.0.2' });
    expect(calls).toBe(1);
    // Not even on the connection that is still open: every request resolves first.
    now += 5_000;
    expect(await client.send(request)).toMatchObject({ errorCode: 'blocked_address', dialled: false });
    expect(calls).toBe(2);
    expect(outer.requests).toHaveLength(1);
    expect(inner.connections).toBe(0);
  });
});

describe('a name', () => {
  it('that moves is followed within 5 s, whatever connections are open', async () => {
    const first = await newEndpoint((socket) => socket.write(ok('200 OK', 'first')));
    const second = await newEndpoint((socket) => socket.write(ok('200 OK', 'second')), {
      host: '127.0.0.2',
      port: first.port,
    });
    let now = 1_000_000;
    let address = '127.0.0.1';
    const client = newClient({ now: () => now, resolve: async () => addresses(address) });
    const request = post(`http://receiver.test:${first.port}/`);
    await client.send(request);
    address = '127.0.0.2';
    now += 5_000;
    const answer = await client.send(request);
    expect(answer.responseBody.toString()).toBe('second');
    expect(first.requests).toHaveLength(1);
    expect(second.requests).toHaveLength(1);
  });

  it('with a dead address among several costs one attempt', async () => {
    const endpoint = await canary();
    const client = newClient({ resolve: async () => addresses('127.0.0.3', '127.0.0.1') });
    const request = post(`http://receiver.test:${endpoint.port}/`);
    expect(await client.send(request)).toMatchObject({ errorCode: 'connection_refused', remoteAddress: '127.0.0.3' });
    expect(await client.send(request)).toMatchObject({ statusCode: 200, remoteAddress: '127.0.0.1' });
  });

  it('with both families is dialled by IPv4', async () => {
    const endpoint = await canary();
    const client = newClient({
      allowedCidrs: ['127.0.0.0/8', '::1/128'].map(parseCidr),
      resolve: async () => addresses('::1', '127.0.0.1'),
    });
    expect(await client.send(post(`http://receiver.test:${endpoint.port}/`))).toMatchObject({
      remoteAddress: '127.0.0.1',
    });
  });

  it('of this machine is resolved by the system', async () => {
    const endpoint = await canary();
    const client = newClient({
      resolve: resolveBySystem,
      allowHttp: 'loopback',
      allowedCidrs: ['127.0.0.0/8', '::1/128'].map(parseCidr),
    });
    const answer = await client.send(post(`http://localhost:${endpoint.port}/`));
    expect(answer).toMatchObject({ statusCode: 200, remoteAddress: '127.0.0.1' });
  });

  it.runIf(hasIpv6)('with IPv6 alone is dialled by IPv6', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')), { host: '::1' });
    const client = newClient({ allowedCidrs: [parseCidr('::1/128')], resolve: async () => addresses('::1') });
    expect(await client.send(post(`http://receiver.test:${endpoint.port}/`))).toMatchObject({
      statusCode: 200,
      remoteAddress: '::1',
    });
    expect(await client.send(post(`http://[::1]:${endpoint.port}/`))).toMatchObject({
      statusCode: 200,
      remoteAddress: '::1',
    });
    expect(endpoint.requests[1]).toContain(`host: [::1]:${endpoint.port}\r\n`);
  });
});

describe('http', () => {
  it('under loopback demands that the name resolves to this machine', async () => {
    const endpoint = await canary();
    const client = newClient({
      allowHttp: 'loopback',
      allowedCidrs: ['127.0.0.0/8', '10.0.0.0/8'].map(parseCidr),
      resolve: async () => addresses('10.0.0.1'),
    });
    expect(await client.send(post(`http://localhost:${endpoint.port}/`))).toMatchObject({
      errorCode: 'blocked_address',
      dialled: false,
    });
    expect(await client.send(post(`http://127.0.0.1:${endpoint.port}/`))).toMatchObject({ statusCode: 200 });
    expect(await client.send(post(`http://receiver.test:${endpoint.port}/`))).toMatchObject({
      errorCode: 'config_invalid',
    });
  });

  it('under loopback refuses a name with one address elsewhere', async () => {
    const endpoint = await canary();
    const client = newClient({
      allowHttp: 'loopback',
      allowedCidrs: ['127.0.0.0/8', '10.0.0.0/8'].map(parseCidr),
      resolve: async () => addresses('127.0.0.1', '10.0.0.1'),
    });
    const answer = await client.send(post(`http://localhost:${endpoint.port}/`));
    expect(answer).toMatchObject({ errorCode: 'blocked_address', dialled: false });
    expect(endpoint.connections).toBe(0);
  });

  it('that is off is not sent', async () => {
    const endpoint = await canary();
    const answer = await newClient({ allowHttp: 'off' }).send(post(`http://receiver.test:${endpoint.port}/`));
    expect(answer).toMatchObject({ errorCode: 'config_invalid', dialled: false });
    expect(endpoint.connections).toBe(0);
  });
});
