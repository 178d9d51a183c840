import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { authorize } from '../../../src/delivery/authorization.js';
import { answer as ok } from '../../support/raw-endpoint.js';
import { certificates, clientCertificates } from '../../support/tls/certificates.js';
import { newClient, newEndpoint, post } from './harness.js';

const trusting = { allowHttp: 'off', extraCa: [certificates.authority] } as const;
const { a, b } = clientCertificates;

/** Answers only those who show a certificate, with the name in it. */
function newReceiver() {
  const tls = {
    ...certificates.receiver,
    ca: clientCertificates.authority,
    requestCert: true,
    rejectUnauthorized: true,
  };
  return newEndpoint(
    (socket) => socket.write(ok('200 OK', (socket as TLSSocket).getPeerCertificate().subject?.CN as string)),
    { tls },
  );
}

const showing = (endpointId: string, certificate: typeof a | null) => authorize(endpointId, null, certificate);

describe('a client certificate', () => {
  it('is shown to an endpoint that asks for it', async () => {
    const endpoint = await newReceiver();
    const request = post(`https://receiver.test:${endpoint.port}/`, showing('we_1', a));
    const answer = await newClient(trusting).send(request);
    expect(answer).toMatchObject({ statusCode: 200, errorCode: null });
    expect(answer.responseBody.toString()).toBe('client-a');
  });

  it('that is missing fails the attempt: the endpoint ends the connection', async () => {
    const endpoint = await newReceiver();
    const answer = await newClient(trusting).send(post(`https://receiver.test:${endpoint.port}/`));
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'connection_reset' });
    expect(endpoint.requests).toEqual([]);
  });

  it('never stands for another endpoint, another certificate, or for none: connections are kept apart', async () => {
    const endpoint = await newReceiver();
    const client = newClient(trusting);
    const url = `https://receiver.test:${endpoint.port}/`;
    const names = [];
    for (const [id, certificate] of [
      ['we_1', a],
      ['we_1', a],
      ['we_2', a],
      ['we_1', b],
      ['we_2', b],
      ['we_1', a],
    ] as const)
      names.push((await client.send(post(url, showing(id, certificate)))).responseBody.toString());
    expect(names).toEqual(['client-a', 'client-a', 'client-a', 'client-b', 'client-b', 'client-a']);
    expect(endpoint.connections).toBe(4);
    expect(await client.send(post(url))).toMatchObject({ errorCode: 'connection_reset' });
  });

  it('that OpenSSL refuses, in a row from elsewhere, fails the attempt without a socket', async () => {
    const endpoint = await newReceiver();
    const mixed = { certificate: a.certificate, private_key: b.private_key };
    const broken = { certificate: 'no certificate', private_key: a.private_key };
    for (const certificate of [mixed, broken]) {
      const request = post(`https://receiver.test:${endpoint.port}/`, showing('we_1', certificate));
      const answer = await newClient(trusting).send(request);
      expect(answer).toMatchObject({ statusCode: null, errorCode: 'config_invalid', dialled: false });
      expect(answer.errorMessage).toMatch(/^the client certificate cannot be used \(ERR_OSSL_/);
    }
    expect(endpoint.connections).toBe(0);
  });
});
