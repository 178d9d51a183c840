import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/config/cidr.js';
import { parseProxyUrl } from '../../src/config/proxy-url.js';
import { AuthorizedSender } from '../../src/delivery/authorized-sender.js';
import { authorize } from '../../src/delivery/authorization.js';
import type { DeliveryClientOptions } from '../../src/delivery/delivery-client.js';
import { TokenSource } from '../../src/delivery/token-source.js';
import { newClient, newEndpoint, post } from '../integration/delivery-client/harness.js';
import { type ForwardProxy, startForwardProxy } from '../support/forward-proxy.js';
import { answer as ok } from '../support/raw-endpoint.js';
import { asRequest, calls, useCanary } from './canary.js';
import { spellings } from './spellings.js';

const canary = useCanary('token URLs and the proxy');

/** Stands for a public address: excepted, whereas the rest of loopback is not. */
const outside = '127.0.0.2';
const policy = { allowHttp: 'on', allowedCidrs: [parseCidr(`${outside}/32`)] } as const;
const answering = (...addresses: string[]) => addresses.map((address) => ({ address, family: 0 }));

const withTokenUrl = (tokenUrl: string) =>
  authorize(
    'we_1',
    {
      type: 'oauth2_client_credentials',
      token_url: tokenUrl,
      client_id: 'client',
      client_secret: 'secret',
      client_authentication: 'client_secret_basic',
      scope: null,
      audience: null,
    },
    null,
  );

function newSender(options: Partial<DeliveryClientOptions>) {
  const client = newClient(options);
  return new AuthorizedSender({ client, tokens: new TokenSource({ client, record: async () => undefined }) });
}

describe('a token URL', () => {
  it('with an address inside, however it is written, is not called', async () => {
    const before = canary.connections;
    const sender = newSender({ allowHttp: 'on', allowedCidrs: [], resolve: async () => answering('203.0.113.7') });
    for (const { host } of spellings) {
      const answer = await sender.send(
        post('https://hooks.example.com/', withTokenUrl(`http://${host}:${canary.port}/`)),
      );
      expect(answer).toMatchObject({ statusCode: null, errorCode: 'token_failed', dialled: false });
      canary.called();
    }
    expect(canary.dials).toBe(0);
    expect(canary.connections).toBe(before);
  });

  it('whose name comes to an address inside is not called', async () => {
    const before = canary.connections;
    const sender = newSender({ ...policy, resolve: async () => answering(outside, '127.0.0.1') });
    const answer = await sender.send(
      post('https://hooks.example.com/', withTokenUrl(`http://auth.test:${canary.port}/`)),
    );
    expect(answer).toMatchObject({ errorCode: 'token_failed', dialled: false });
    canary.called();
    expect([canary.dials, canary.connections]).toEqual([0, before]);
  });

  it('that redirects inside is not followed', async () => {
    const before = canary.connections;
    const server = await newEndpoint(
      (socket) => socket.write(ok('307 Temporary Redirect', '', [`Location: http://127.0.0.1:${canary.port}/`])),
      { host: outside },
    );
    const sender = newSender({ ...policy, resolve: async () => answering(outside) });
    const answer = await sender.send(
      post('https://hooks.example.com/', withTokenUrl(`http://auth.test:${server.port}/`)),
    );
    expect(answer.errorMessage).toMatch(/answered 307; redirects are never followed$/);
    canary.called();
    expect(server.requests).toHaveLength(1);
    expect(canary.connections).toBe(before);
  });
});

describe('with a proxy', () => {
  let proxy: ForwardProxy;
  beforeAll(async () => {
    proxy = await startForwardProxy();
  });
  beforeEach(() => {
    proxy.target = null;
  });
  afterAll(() => proxy.close());

  const through = (resolves: boolean) => ({ ...parseProxyUrl(`http://127.0.0.1:${proxy.port}`), resolves });

  it.each([false, true])(
    'an address inside, however it is written, is not asked for (the proxy resolves: %s)',
    async (resolves) => {
      const before = proxy.requests.length;
      for (const { host } of spellings) {
        const client = newClient({ allowHttp: 'on', allowedCidrs: [], proxy: through(resolves) });
        const answer = await client.send(post(`http://${host}:${canary.port}/`));
        expect(answer).toMatchObject({ statusCode: null, dialled: false });
        expect(answer.errorCode).not.toBe('proxy_failed');
        canary.called();
      }
      expect(canary.dials).toBe(0);
      expect(proxy.requests.length).toBe(before);
    },
  );

  it('a name that comes to an address inside is not asked for, by any kind of call', async () => {
    const before = proxy.requests.length;
    for (const list of [['127.0.0.1'], [outside, '10.0.0.1'], ['::ffff:127.0.0.1']])
      for (const call of calls) {
        const client = newClient({ ...policy, resolve: async () => answering(...list), proxy: through(false) });
        const answer = await client.send(post(`http://shifty.test:${canary.port}/`, asRequest(call)));
        expect(answer).toMatchObject({ errorCode: 'blocked_address', dialled: false });
        canary.called();
      }
    expect(canary.dials).toBe(0);
    expect(proxy.requests.length).toBe(before);
  });

  it('a name that changes is asked for by the address that was judged', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')), { host: outside });
    const before = canary.connections;
    let asked = 0;
    const resolve = async () => answering(asked++ === 0 ? outside : '127.0.0.1');
    const client = newClient({ ...policy, resolve, proxy: through(false) });
    expect(await client.send(post(`http://shifty.test:${endpoint.port}/`))).toMatchObject({
      statusCode: 200,
      remoteAddress: outside,
    });
    canary.called();
    expect(proxy.targets.at(-1)).toBe(`${outside}:${endpoint.port}`);
    expect([asked, canary.connections]).toEqual([1, before]);
  });

  it('nothing goes beside it: each socket of this process leads to the proxy, which may be on a private address', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')), { host: outside });
    for (const call of calls) {
      const client = newClient({ ...policy, resolve: async () => answering(outside), proxy: through(false) });
      const before = proxy.requests.length;
      const answer = await client.send(post(`http://outside.test:${endpoint.port}/`, asRequest(call)));
      expect(answer).toMatchObject({ statusCode: 200 });
      canary.called();
      expect(proxy.requests.length).toBe(before + 1);
    }
  });
});
