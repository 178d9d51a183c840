import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { answer as ok } from '../../support/raw-endpoint.js';
import { certificates } from '../../support/tls/certificates.js';
import { newClient, newEndpoint, post } from './harness.js';

const secure = (tls: object = certificates.receiver) => newEndpoint((socket) => socket.write(ok('200 OK')), { tls });
const trusting = { allowHttp: 'off', extraCa: [certificates.authority] } as const;

describe('TLS', () => {
  it('names the host of the URL, not the address, and offers HTTP/1.1', async () => {
    const names: unknown[] = [];
    const endpoint = await newEndpoint(
      (socket) => {
        names.push((socket as TLSSocket & { servername: unknown }).servername, (socket as TLSSocket).alpnProtocol);
        socket.write(ok('200 OK'));
      },
      { tls: { ...certificates.receiver, ALPNProtocols: ['h2', 'http/1.1'] } },
    );
    const client = newClient(trusting);
    for (const host of ['receiver.test', 'a.receiver.test', 'receiver.test.', '127.0.0.1']) {
      const answer = await client.send(post(`https://${host}:${endpoint.port}/`));
      expect(answer).toMatchObject({ statusCode: 200, errorCode: null, remoteAddress: '127.0.0.1' });
    }
    expect(names.filter((_, index) => index % 2 === 0)).toEqual([
      'receiver.test',
      'a.receiver.test',
      'receiver.test',
      false,
    ]);
    expect(new Set(names.filter((_, index) => index % 2 === 1))).toEqual(new Set(['http/1.1']));
  });

  it.each([
    ['a self-signed certificate', certificates.selfSigned, 'receiver.test', /SELF_SIGNED/],
    ['a certificate for another name', certificates.receiver, 'other.test', /another name/],
    ['a wildcard one level too deep', certificates.receiver, 'a.b.receiver.test', /another name/],
  ])('with %s fails before anything is sent', async (_what, certificate, host, message) => {
    const endpoint = await secure(certificate);
    const answer = await newClient(trusting).send(post(`https://${host}:${endpoint.port}/`));
    expect(answer).toMatchObject({
      statusCode: null,
      errorCode: 'tls_failed',
      dialled: true,
      remoteAddress: '127.0.0.1',
    });
    expect(answer.errorMessage).toMatch(message);
    expect(endpoint.requests).toHaveLength(0);
  });

  it('with an authority that nobody trusts fails', async () => {
    const endpoint = await secure();
    const answer = await newClient({ allowHttp: 'off' }).send(post(`https://receiver.test:${endpoint.port}/`));
    expect(answer).toMatchObject({ errorCode: 'tls_failed' });
    expect(endpoint.requests).toHaveLength(0);
  });

  it('is checked even when the environment says not to', async () => {
    const endpoint = await secure(certificates.selfSigned);
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      const answer = await newClient(trusting).send(post(`https://receiver.test:${endpoint.port}/`));
      expect(answer).toMatchObject({ errorCode: 'tls_failed' });
    } finally {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    }
  });

  it('is checked anew on every connection', async () => {
    const endpoint = await secure();
    const client = newClient({ ...trusting, idleTimeoutMs: 1 });
    const url = (host: string) => `https://${host}:${endpoint.port}/`;
    expect(await client.send(post(url('receiver.test')))).toMatchObject({ statusCode: 200 });
    expect(await client.send(post(url('other.test')))).toMatchObject({ errorCode: 'tls_failed' });
  });

  it('with a server that speaks plain HTTP fails', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')), {
      onConnection: (socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
    });
    const answer = await newClient(trusting).send(post(`https://receiver.test:${endpoint.port}/`));
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'tls_failed' });
  });

  it('that the server ends amid the handshake is connection_reset', async () => {
    const endpoint = await newEndpoint(() => {}, { onConnection: (socket) => void socket.resetAndDestroy() });
    const answer = await newClient(trusting).send(post(`https://receiver.test:${endpoint.port}/`));
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'connection_reset' });
  });

  it('that demands a certificate of us fails as TLS', async () => {
    const endpoint = await secure({
      ...certificates.receiver,
      requestCert: true,
      rejectUnauthorized: true,
      ca: certificates.authority,
    });
    const answer = await newClient(trusting).send(post(`https://receiver.test:${endpoint.port}/`));
    expect(answer.statusCode).toBeNull();
    expect(answer.errorCode).toMatch(/^(tls_failed|connection_reset)$/);
  });
});
