import { readFileSync } from 'node:fs';
import type { TLSSocket, TlsOptions } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/config/cidr.js';
import { answer as ok } from '../support/raw-endpoint.js';
import { certificates } from '../support/tls/certificates.js';
import { newClient, newEndpoint, post } from '../integration/delivery-client/harness.js';
import { asRequest, calls, useCanary } from './canary.js';

const canary = useCanary('TLS names');

const read = (name: string) => readFileSync(new URL(`tls/${name}`, import.meta.url), 'utf8');
/** For receiver.test and *.receiver.test, and over since 2020. */
const expired = { cert: read('expired.pem'), key: read('expired-key.pem') };

const client = (...extraCa: string[]) =>
  newClient({ allowHttp: 'off', allowedCidrs: [parseCidr('127.0.0.0/8')], extraCa });
const secure = (tls: TlsOptions) => newEndpoint((socket) => socket.write(ok('200 OK')), { tls });

describe('a host that can not prove its name', () => {
  it.each([
    ['a certificate for another name', certificates.receiver, 'other.test', certificates.authority],
    ['a certificate for the name above', certificates.receiver, 'test', certificates.authority],
    ['a certificate for one level less', certificates.receiver, 'a.b.receiver.test', certificates.authority],
    [
      'a certificate for the name within another',
      certificates.receiver,
      'receiver.test.evil.test',
      certificates.authority,
    ],
    ['a certificate for another address', certificates.receiver, '127.0.0.2', certificates.authority],
    ['a self-signed certificate', certificates.selfSigned, 'receiver.test', certificates.authority],
    ['an authority that nobody trusts', certificates.receiver, 'receiver.test', null],
    ['an expired certificate of a trusted issuer', expired, 'receiver.test', expired.cert],
  ])('but shows %s is sent nothing by any call', async (_what, tls, host, authority) => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')), {
      tls,
      host: host.startsWith('127') ? host : '127.0.0.1',
    });
    for (const call of calls) {
      const sender = client(...(authority === null ? [] : [authority]));
      const answer = await sender.send(post(`https://${host}:${endpoint.port}/`, asRequest(call)));
      expect(answer).toMatchObject({ statusCode: null, errorCode: 'tls_failed', dialled: true });
      canary.called();
    }
    expect(endpoint.requests).toHaveLength(0);
  });

  it('is told from one that can', async () => {
    const endpoint = await secure(certificates.receiver);
    for (const call of calls) {
      const answer = await client(certificates.authority).send(
        post(`https://receiver.test:${endpoint.port}/`, asRequest(call)),
      );
      expect(answer).toMatchObject({ statusCode: 200, errorCode: null });
      canary.called();
    }
    expect(endpoint.requests).toHaveLength(calls.length);
  });
});

describe('the name that a host is asked for', () => {
  it('is that of the URL, whatever address is dialled, and never a number', async () => {
    const names: unknown[] = [];
    const endpoint = await newEndpoint(
      (socket) => {
        names.push((socket as TLSSocket & { servername: unknown }).servername);
        socket.write(ok('200 OK'));
      },
      { tls: certificates.receiver },
    );
    for (const host of ['receiver.test', 'RECEIVER.test', 'receiver.test.', 'a.receiver.test', '127.0.0.1', '0x7f.1']) {
      const answer = await client(certificates.authority).send(post(`https://${host}:${endpoint.port}/`));
      expect(answer).toMatchObject({ statusCode: 200, remoteAddress: '127.0.0.1' });
      canary.called();
    }
    expect(names).toEqual(['receiver.test', 'receiver.test', 'receiver.test', 'a.receiver.test', false, false]);
  });

  it('does not lead inside, though a certificate for it is valid', async () => {
    const endpoint = await secure(certificates.receiver);
    const sender = newClient({ allowHttp: 'off', allowedCidrs: [], extraCa: [certificates.authority] });
    for (const call of calls) {
      for (const host of ['receiver.test', '127.0.0.1']) {
        const answer = await sender.send(post(`https://${host}:${endpoint.port}/`, asRequest(call)));
        expect(answer).toMatchObject({ statusCode: null, errorCode: 'blocked_address', dialled: false });
        canary.called();
      }
    }
    expect(endpoint.connections).toBe(0);
  });
});
