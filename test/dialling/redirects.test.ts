import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/config/cidr.js';
import { answer as ok } from '../support/raw-endpoint.js';
import { newClient, newEndpoint, post } from '../integration/delivery-client/harness.js';
import { asRequest, calls, useCanary } from './canary.js';

const canary = useCanary('redirects');
const outside = '127.0.0.2';

/** Loopback is excepted here, so that nothing but our not following keeps a call from the canary. */
const careless = () =>
  newClient({
    allowHttp: 'on',
    allowedCidrs: ['127.0.0.0/8', '::1/128'].map(parseCidr),
    resolve: async () => [{ address: outside, family: 4 }],
  });

const statuses = [
  '300 Multiple Choices',
  '301 Moved Permanently',
  '302 Found',
  '303 See Other',
  '305 Use Proxy',
].concat(['306 Switch Proxy', '307 Temporary Redirect', '308 Permanent Redirect', '304 Not Modified', '399 Whatever']);

const targets = (port: number) => [
  `http://127.0.0.1:${port}/`,
  `http://2130706433:${port}/`,
  `http://[::1]:${port}/`,
  `//127.0.0.1:${port}/`,
  `https://127.0.0.1:${port}/`,
];

async function callAll(status: string, headers: readonly string[]) {
  const endpoint = await newEndpoint((socket) => socket.write(ok(status, '', headers)), { host: outside });
  const client = careless();
  const answers = [];
  for (const call of calls) {
    answers.push(await client.send(post(`http://outside.test:${endpoint.port}/`, asRequest(call))));
    canary.called();
  }
  expect(endpoint.requests).toHaveLength(calls.length);
  return answers;
}

describe('an answer that sends us elsewhere', () => {
  it.each(statuses)('with %s is a failure, and nobody is called', async (status) => {
    const before = canary.connections;
    for (const target of targets(canary.port)) {
      for (const answer of await callAll(status, [`Location: ${target}`])) {
        expect(answer).toMatchObject({ statusCode: Number(status.slice(0, 3)), errorCode: 'redirect' });
      }
    }
    expect(canary.connections).toBe(before);
  });

  it.each(['201 Created', '200 OK', '401 Unauthorized', '407 Proxy Authentication Required', '503 Unavailable'])(
    'by a header of %s is not followed',
    async (status) => {
      const before = canary.connections;
      for (const target of targets(canary.port)) {
        const answers = await callAll(status, [
          `Location: ${target}`,
          `Content-Location: ${target}`,
          `Refresh: 0; url=${target}`,
          `Link: <${target}>; rel=preconnect`,
          `Alt-Svc: h2=":${canary.port}"; ma=3600, http/1.1="127.0.0.1:${canary.port}"`,
        ]);
        for (const answer of answers) expect(answer.statusCode).toBe(Number(status.slice(0, 3)));
      }
      expect(canary.connections).toBe(before);
    },
  );

  it('by an early hint is not followed', async () => {
    const before = canary.connections;
    const endpoint = await newEndpoint(
      (socket) => {
        socket.write(`HTTP/1.1 103 Early Hints\r\nLink: <http://127.0.0.1:${canary.port}/>; rel=preconnect\r\n\r\n`);
        socket.write(ok('200 OK'));
      },
      { host: outside },
    );
    const client = careless();
    for (const call of calls) {
      const answer = await client.send(post(`http://outside.test:${endpoint.port}/`, asRequest(call)));
      expect(answer).toMatchObject({ statusCode: 200, errorCode: null });
      canary.called();
    }
    expect(canary.connections).toBe(before);
  });
});
