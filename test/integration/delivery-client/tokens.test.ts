import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseCidr } from '../../../src/config/cidr.js';
import { AuthorizedSender } from '../../../src/delivery/authorized-sender.js';
import { authorize } from '../../../src/delivery/authorization.js';
import type { DeliveryClientOptions } from '../../../src/delivery/delivery-client.js';
import { type TokenReport, TokenSource } from '../../../src/delivery/token-source.js';
import type { OAuthCredentials } from '../../../src/domain/credentials.js';
import { answer as ok } from '../../support/raw-endpoint.js';
import { TokenServer } from '../../support/token-server.js';
import { newClient, newEndpoint, post } from './harness.js';

let server: TokenServer;
beforeEach(async () => {
  server = await TokenServer.start();
});
afterEach(() => server.stop());

const secret = 'client-secret-that-stays-out';

/** A sender whose clock a test can move. */
function newSender(options: Partial<DeliveryClientOptions> = {}, maxTokens?: number) {
  const clock = { now: 1_800_000_000_000 };
  const reports: TokenReport[] = [];
  const client = newClient(options);
  const tokens = new TokenSource({
    client,
    record: async (report) => void reports.push(report),
    now: () => clock.now,
    ...(maxTokens === undefined ? {} : { maxTokens }),
  });
  return { sender: new AuthorizedSender({ client, tokens }), tokens, clock, reports };
}

function withCredentials(changes: Partial<OAuthCredentials> = {}, endpointId = 'we_1') {
  return authorize(
    endpointId,
    {
      type: 'oauth2_client_credentials',
      token_url: server.url,
      client_id: 'client',
      client_secret: secret,
      client_authentication: 'client_secret_basic',
      scope: null,
      audience: null,
      ...changes,
    },
    null,
  );
}

const answering = (...statuses: string[]) => {
  let asked = 0;
  return newEndpoint((socket) => socket.write(ok(statuses[Math.min(asked++, statuses.length - 1)] ?? '200 OK')));
};
const authorizations = (requests: readonly string[]) =>
  requests.map((request) => /\r\nauthorization: (.*)\r\n/i.exec(request)?.[1]);

describe('a token', () => {
  it('is fetched once, goes along as Bearer, and is kept', async () => {
    const endpoint = await answering('200 OK');
    const { sender, reports } = newSender();
    for (let n = 0; n < 3; n++) {
      const answer = await sender.send(post(`http://receiver.test:${endpoint.port}/`, withCredentials()));
      expect(answer).toMatchObject({ statusCode: 200, errorCode: null, resent: false });
    }
    expect(server.requests).toHaveLength(1);
    expect(authorizations(endpoint.requests)).toEqual(Array(3).fill(`Bearer ${server.tokens[0]}`));
    expect(reports).toEqual([{ endpointId: 'we_1', statusCode: 200, problem: null }]);
  });

  it('is asked for with a header, or in the body, with scope and audience', async () => {
    const endpoint = await answering('200 OK');
    const { sender } = newSender();
    const url = `http://receiver.test:${endpoint.port}/`;
    const odd = { client_id: 'a b:c', client_secret: 'ä/+&' };
    await sender.send(post(url, withCredentials({ ...odd, scope: 'hooks:write x', audience: 'https://a.test/' })));
    await sender.send(post(url, withCredentials({ ...odd, client_authentication: 'client_secret_post' })));
    const [first, second] = server.requests;
    const encoded = 'a+b%3Ac:%C3%A4%2F%2B%26';
    expect(first!.authorization).toBe(`Basic ${Buffer.from(encoded).toString('base64')}`);
    expect(Object.fromEntries(first!.form)).toEqual({
      grant_type: 'client_credentials',
      scope: 'hooks:write x',
      audience: 'https://a.test/',
    });
    expect(second!.authorization).toBeUndefined();
    expect(Object.fromEntries(second!.form)).toEqual({ grant_type: 'client_credentials', ...odd });
  });

  it('is one for all who ask at the same time', async () => {
    const endpoint = await answering('200 OK');
    const { sender } = newSender();
    const url = `http://receiver.test:${endpoint.port}/`;
    const answers = await Promise.all(Array.from({ length: 20 }, () => sender.send(post(url, withCredentials()))));
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(20);
    expect(server.requests).toHaveLength(1);
  });

  it('is never another endpoint’s, nor that of other credentials', async () => {
    const endpoint = await answering('200 OK');
    const { sender } = newSender();
    const url = `http://receiver.test:${endpoint.port}/`;
    for (const means of [withCredentials(), withCredentials({}, 'we_2'), withCredentials({ client_secret: 'other' })])
      await sender.send(post(url, means));
    expect(server.requests).toHaveLength(3);
    expect(new Set(authorizations(endpoint.requests)).size).toBe(3);
  });

  it('is fetched anew 30 s before its end, and each time where it ends sooner', async () => {
    const endpoint = await answering('200 OK');
    const { sender, clock } = newSender();
    const send = () => sender.send(post(`http://receiver.test:${endpoint.port}/`, withCredentials()));
    server.expiresInS = 100;
    await send();
    clock.now += 69_999;
    await send();
    expect(server.requests).toHaveLength(1);
    clock.now += 1;
    server.expiresInS = '30';
    await send();
    await send();
    expect(server.requests).toHaveLength(3);
  });

  it('makes way for others where there are too many', async () => {
    const endpoint = await answering('200 OK');
    const { sender, tokens } = newSender({}, 3);
    for (let n = 0; n < 10; n++)
      await sender.send(post(`http://receiver.test:${endpoint.port}/`, withCredentials({}, `we_${n}`)));
    expect(tokens.size).toBe(3);
  });
});

describe('an answer 401', () => {
  it('to a kept token brings another one, once, within the same attempt, which says that it was sent twice', async () => {
    const endpoint = await answering('200 OK', '401 Unauthorized', '200 OK');
    const { sender, reports } = newSender();
    const send = () => sender.send(post(`http://receiver.test:${endpoint.port}/`, withCredentials()));
    expect(await send()).toMatchObject({ statusCode: 200, resent: false });
    expect(await send()).toMatchObject({ statusCode: 200, errorCode: null, resent: true });
    expect(authorizations(endpoint.requests)).toEqual([0, 0, 1].map((n) => `Bearer ${server.tokens[n]}`));
    expect(reports).toHaveLength(2);
  });

  it('to two tokens is the attempt’s', async () => {
    const endpoint = await answering('200 OK', '401 Unauthorized');
    const { sender } = newSender();
    const send = () => sender.send(post(`http://receiver.test:${endpoint.port}/`, withCredentials()));
    await send();
    expect(await send()).toMatchObject({ statusCode: 401, errorCode: 'http_status', resent: true });
    expect(endpoint.requests).toHaveLength(3);
  });

  it('to a fresh token is the attempt’s, and nothing is sent again', async () => {
    const endpoint = await answering('401 Unauthorized');
    const { sender } = newSender();
    const answer = await sender.send(post(`http://receiver.test:${endpoint.port}/`, withCredentials()));
    expect(answer).toMatchObject({ statusCode: 401, resent: false });
    expect([endpoint.requests.length, server.requests.length]).toEqual([1, 1]);
  });

  it('after which the token server fails stays a 401, and says so', async () => {
    const endpoint = await answering('200 OK', '401 Unauthorized');
    const { sender } = newSender();
    const send = () => sender.send(post(`http://receiver.test:${endpoint.port}/`, withCredentials()));
    await send();
    server.answer = (reply) => reply.writeHead(503).end(secret);
    const { host } = new URL(server.url);
    expect(await send()).toMatchObject({
      statusCode: 401,
      errorMessage: `answered 401; then no token from ${host}: answered 503`,
    });
  });
});

const json = (status: number, body: unknown) => (reply: ServerResponse) =>
  void reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

describe('a token server that gives none', () => {
  const ways: [string, (reply: ServerResponse) => void, string][] = [
    ['503', (reply) => void reply.writeHead(503).end(secret), 'answered 503'],
    [
      'an error by name',
      json(401, { error: 'invalid_client', error_description: secret }),
      'answered 401 (invalid_client)',
    ],
    ['an error of its own', json(400, { error: secret }), 'answered 400'],
    [
      'a redirect',
      (reply) => void reply.writeHead(302, { location: '/other' }).end(),
      'answered 302; redirects are never followed',
    ],
    ['no JSON', (reply) => void reply.writeHead(200).end(secret), 'the answer is not a JSON object'],
    ['no token', json(200, { token: secret }), 'the answer has no access_token'],
    ['a token of another type', json(200, { access_token: 'x', token_type: 'mac' }), 'its token_type is not Bearer'],
    ['a token that is no header', json(200, { access_token: 'a\r\nb' }), 'its access_token cannot be sent in a header'],
    ['too much', json(200, { access_token: 'x'.repeat(20_000) }), 'the answer is larger than 16 KiB'],
    [
      'a broken connection',
      (reply) => void reply.socket?.destroy(),
      'connection ended before the answer (UND_ERR_SOCKET)',
    ],
    ['no answer in time', () => undefined, 'timed out after 500 ms'],
  ];

  it.each(ways)('but %s fails the attempt visibly, and the endpoint is not called', async (_what, answerWith, text) => {
    const endpoint = await answering('200 OK');
    const { sender, reports } = newSender();
    server.answer = answerWith;
    const request = post(`http://receiver.test:${endpoint.port}/`, { ...withCredentials(), timeoutMs: 500 });
    const answer = await sender.send(request);
    const { host } = new URL(server.url);
    expect(answer).toMatchObject({
      statusCode: null,
      errorCode: 'token_failed',
      errorMessage: `no token from ${host}: ${text}`,
      dialled: false,
    });
    expect(endpoint.requests).toEqual([]);
    expect(JSON.stringify([answer, reports])).not.toContain(secret);
  });

  it('since its address must not be called is refused without a socket', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')), { host: '127.0.0.2' });
    const outside = [{ address: '127.0.0.2', family: 4 }];
    const { sender } = newSender({ allowedCidrs: [parseCidr('127.0.0.2/32')], resolve: async () => outside });
    const answer = await sender.send(post(`http://receiver.test:${endpoint.port}/`, withCredentials()));
    expect(answer).toMatchObject({ errorCode: 'token_failed' });
    expect(answer.errorMessage).toMatch(/only public addresses may be called, and this one is loopback/);
    expect(server.requests).toEqual([]);
  });
});
