import { createServer } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { parseProxyUrl } from '../../../src/config/proxy-url.js';
import { isUnsent } from '../../../src/delivery/outbound.js';
import { type ForwardProxy, type ProxyManner, startForwardProxy } from '../../support/forward-proxy.js';
import { answer as ok } from '../../support/raw-endpoint.js';
import { until } from '../../support/posthorn.js';
import { certificates } from '../../support/tls/certificates.js';
import { newClient, newEndpoint, post } from './harness.js';

const proxies: ForwardProxy[] = [];
afterEach(() => Promise.all(proxies.splice(0).map((proxy) => proxy.close())));

async function newProxy(options: Parameters<typeof startForwardProxy>[0] = {}): Promise<ForwardProxy> {
  const proxy = await startForwardProxy(options);
  proxies.push(proxy);
  return proxy;
}

const through = ({ port }: { port: number }, { resolves = false, userinfo = '', scheme = 'http' } = {}) => ({
  ...parseProxyUrl(`${scheme}://${userinfo}127.0.0.1:${port}`),
  resolves,
});

const unable = () => Promise.reject(new Error('looked up'));
const secure = () => newEndpoint((socket) => socket.write(ok('200 OK', 'seen')), { tls: certificates.receiver });
const trusting = { allowHttp: 'off', extraCa: [certificates.authority] } as const;

describe('a call through a proxy', () => {
  it('goes to the address that was judged, with the TLS name of the host, and shows the proxy its credentials', async () => {
    const [endpoint, proxy] = [await secure(), await newProxy()];
    const client = newClient({ ...trusting, proxy: through(proxy, { userinfo: 'pr%40xy:pa%3Ass@' }) });
    const answer = await client.send(post(`https://receiver.test:${endpoint.port}/hook`));
    expect(answer).toMatchObject({ statusCode: 200, errorCode: null, remoteAddress: '127.0.0.1', resent: false });
    expect(answer.responseBody.toString()).toBe('seen');
    expect(proxy.targets).toEqual([`127.0.0.1:${endpoint.port}`]);
    const basic = Buffer.from('pr@xy:pa:ss').toString('base64');
    expect(proxy.requests[0]).toContain(`\r\nProxy-Authorization: Basic ${basic}\r\n`);
    expect(endpoint.requests[0]).not.toMatch(/proxy/i);
  });

  it('over http goes through a tunnel too', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK', 'seen')));
    const proxy = await newProxy();
    const client = newClient({ proxy: through(proxy) });
    const answer = await client.send(post(`http://receiver.test:${endpoint.port}/hook`));
    expect(answer).toMatchObject({ statusCode: 200, errorCode: null, remoteAddress: '127.0.0.1' });
    expect(proxy.targets).toEqual([`127.0.0.1:${endpoint.port}`]);
    expect(endpoint.requests[0]).toMatch(/^POST \/hook HTTP\/1.1/);
  });

  it('may speak TLS to the proxy itself', async () => {
    const [endpoint, proxy] = [await secure(), await newProxy({ tls: certificates.receiver })];
    const client = newClient({ ...trusting, proxy: through(proxy, { scheme: 'https' }) });
    const answer = await client.send(post(`https://receiver.test:${endpoint.port}/hook`));
    expect(answer).toMatchObject({ statusCode: 200, errorCode: null });
  });

  it('keeps the tunnel for the next one, and leaves no socket open in the end', async () => {
    const [endpoint, proxy] = [await secure(), await newProxy()];
    const client = newClient({ ...trusting, proxy: through(proxy) });
    for (let n = 0; n < 3; n++)
      expect(await client.send(post(`https://receiver.test:${endpoint.port}/`))).toMatchObject({ statusCode: 200 });
    expect(proxy.targets).toHaveLength(1);
    await client.close();
    await until('all sockets are closed', async () => proxy.openSockets === 0 && endpoint.openSockets === 0);
  });

  it('is refused without a socket where the address is', async () => {
    const proxy = await newProxy();
    const client = newClient({ allowedCidrs: [], proxy: through(proxy) });
    for (const host of ['receiver.test', '127.0.0.1'])
      expect(await client.send(post(`http://${host}:9/`))).toMatchObject({ errorCode: 'blocked_address' });
    expect(proxy.requests).toEqual([]);
  });

  it('fails by the endpoint’s certificate as it would without a proxy', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')), { tls: certificates.selfSigned });
    const proxy = await newProxy();
    const client = newClient({ ...trusting, proxy: through(proxy) });
    for (const host of ['receiver.test', '127.0.0.1'])
      expect(await client.send(post(`https://${host}:${endpoint.port}/`))).toMatchObject({ errorCode: 'tls_failed' });
    expect(endpoint.requests).toEqual([]);
    await until('all sockets are closed', async () => proxy.openSockets === 0);
  });
});

describe('a proxy that resolves names', () => {
  it('is told the name, which we never look up', async () => {
    const [endpoint, proxy] = [await secure(), await newProxy()];
    proxy.target = { host: '127.0.0.1', port: endpoint.port };
    const client = newClient({ ...trusting, resolve: unable, proxy: through(proxy, { resolves: true }) });
    const answer = await client.send(post('https://receiver.test/hook'));
    expect(answer).toMatchObject({ statusCode: 200, errorCode: null, remoteAddress: null });
    expect(proxy.targets).toEqual(['receiver.test:443']);
  });

  it('is not told of addresses that must not be called, nor of its own machine', async () => {
    const proxy = await newProxy();
    const client = newClient({ allowedCidrs: [], proxy: through(proxy, { resolves: true }) });
    for (const host of ['10.0.0.1', '2130706433', '[::ffff:127.0.0.1]', 'localhost', 'a.localhost'])
      expect(await client.send(post(`https://${host}/`))).toMatchObject({ errorCode: 'blocked_address' });
    expect(proxy.requests).toEqual([]);
  });
});

describe('a proxy that fails', () => {
  const ways: [ProxyManner, RegExp][] = [
    ['hang', /^timed out after 400 ms while waiting for the proxy$/],
    ['ask_for_password', /^the proxy answered 407 to CONNECT$/],
    ['bad_gateway', /^the proxy answered 502 to CONNECT$/],
    ['close', /^the proxy closed the connection before it answered$/],
    ['close_midway', /^the proxy closed the connection before it answered$/],
    ['garbage', /^the proxy did not answer in HTTP$/],
  ];

  it.each(ways)(
    'by %s is no fault of the endpoint’s: nothing is sent, and no socket stays',
    async (manner, message) => {
      const [endpoint, proxy] = [await secure(), await newProxy()];
      proxy.manner = manner;
      const client = newClient({ ...trusting, proxy: through(proxy, { userinfo: 'user:secret@' }) });
      const url = `https://receiver.test:${endpoint.port}/`;
      const answer = await client.send(post(url, { timeoutMs: 400 }));
      expect(answer).toMatchObject({
        statusCode: null,
        errorCode: 'proxy_failed',
        dialled: false,
        remoteAddress: null,
      });
      expect(answer.errorMessage).toMatch(message);
      expect(isUnsent(answer)).toBe(true);
      expect(endpoint.connections).toBe(0);
      await until('all sockets are closed', async () => proxy.openSockets === 0);
      // And it is asked anew when it is well again.
      proxy.manner = 'tunnel';
      expect(await client.send(post(url))).toMatchObject({ statusCode: 200 });
    },
  );

  it('by refusing connections is no fault of the endpoint’s either', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as { port: number };
    closed.close();
    const answer = await newClient({ proxy: through({ port }) }).send(post('http://receiver.test:9/'));
    expect(answer).toMatchObject({ errorCode: 'proxy_failed', errorMessage: 'the proxy failed (ECONNREFUSED)' });
  });

  it('with a certificate that nobody trusts is not told our credentials', async () => {
    const proxy = await newProxy({ tls: certificates.selfSigned });
    const client = newClient({ ...trusting, proxy: through(proxy, { scheme: 'https', userinfo: 'user:secret@' }) });
    const answer = await client.send(post('https://receiver.test:9/'));
    expect(answer).toMatchObject({ errorCode: 'proxy_failed' });
    expect(answer.errorMessage).toMatch(/^the proxy failed \(.*SELF_SIGNED.*\)$/);
    expect(proxy.requests).toEqual([]);
  });

  it('after the request went out on a kept tunnel has spent the attempt', async () => {
    const endpoint = await newEndpoint(
      (socket, count) => (count === 1 ? socket.write(ok('200 OK')) : socket.destroy()),
      { tls: certificates.receiver },
    );
    const proxy = await newProxy();
    const client = newClient({ ...trusting, proxy: through(proxy) });
    const url = `https://receiver.test:${endpoint.port}/`;
    expect(await client.send(post(url))).toMatchObject({ statusCode: 200 });
    proxy.manner = 'bad_gateway';
    const answer = await client.send(post(url));
    expect(answer).toMatchObject({ errorCode: 'connection_reset', resent: true, dialled: true });
    expect(isUnsent(answer)).toBe(false);
  });
});
