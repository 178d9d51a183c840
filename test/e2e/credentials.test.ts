import { createPublicKey, verify } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readHistories } from '../support/histories.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';
import { certificates, clientCertificates } from '../support/tls/certificates.js';
import { TokenServer } from '../support/token-server.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;
let tokens: TokenServer;
/** Takes only requests of who shows a client certificate. */
let mutual: Server;
const shown: string[] = [];
const stayOut: Record<string, string> = {};
const endpointIds: string[] = [];
const deliveryIds: string[] = [];
let answers = '';

/** What the receiver wants to see at each path; anything else is a 401, for challenges as for deliveries. */
const wanted: Record<string, (headers: Record<string, string | string[] | undefined>) => boolean> = {};

beforeAll(async () => {
  posthorn = await startPosthorn({
    extra: {
      POSTHORN_VERIFICATION_REQUIRED: 'on',
      POSTHORN_DELIVERY_RETRY_WAITS: '100ms,100ms',
      POSTHORN_DELIVERY_CA_FILE: fileURLToPath(new URL('../support/tls/ca.pem', import.meta.url)),
    },
  });
  receiver = await RecordingReceiver.start((request, reply) => {
    if (!wanted[request.path]?.(request.headers)) return void reply.writeHead(401).end();
    const { data } = JSON.parse(request.body.toString()) as { data: { challenge?: string } };
    reply.writeHead(200).end(data.challenge ?? 'ok');
  });
  tokens = await TokenServer.start();
  mutual = createServer(
    { ...certificates.receiver, ca: clientCertificates.authority, requestCert: true, rejectUnauthorized: true },
    (request, reply) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        shown.push((request.socket as TLSSocket).getPeerCertificate().subject.CN as string);
        const { data } = JSON.parse(Buffer.concat(chunks).toString()) as { data: { challenge?: string } };
        reply.end(data.challenge ?? 'ok');
      });
    },
  ).listen(0, '127.0.0.1');
  await once(mutual, 'listening');
});
afterAll(async () => {
  mutual.closeAllConnections();
  mutual.close();
  await tokens.stop();
  await receiver.stop();
  await posthorn.stop();
});

/** An endpoint that passes its verification, a ping, and one delivery: all of them with its credentials. */
async function deliverTo(name: string, url: string, settings: object): Promise<string> {
  const { api } = posthorn;
  const { id } = await api.createEndpoint(url, [`${name}.done`], settings as Record<string, unknown>);
  endpointIds.push(id);
  const path = `/v1/webhooks/subscriptions/${id}`;
  await until('it is active', async () => (await api.get(path)).body.status === 'active');
  expect((await api.post(`${path}/ping`)).body).toMatchObject({ delivered: true });
  const { deliveries } = await api.publish(`${name}.done`);
  const delivery = deliveries[0]!.id;
  deliveryIds.push(delivery);
  expect(await api.delivery(delivery, '10s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
  for (const at of [path, '/v1/webhooks/subscriptions', `${path}/health`, `${path}/secrets`])
    answers += (await api.get(at)).text;
  return delivery;
}

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

describe('an endpoint gets its verification, pings and deliveries', () => {
  it('with the user name and password of its URL', async () => {
    stayOut['password'] = 'password-that-stays-out';
    stayOut['basic'] = Buffer.from(`hooks:${stayOut['password']}`).toString('base64');
    wanted['/basic'] = ({ authorization }) => authorization === basic(`hooks:${stayOut['password']}`);
    await deliverTo('basic', `${receiver.url.replace('//', `//hooks:${stayOut['password']}@`)}/basic`, {});
  });

  it('with a bearer token', async () => {
    stayOut['bearer'] = 'bearer-that-stays-out';
    wanted['/bearer'] = ({ authorization }) => authorization === `Bearer ${stayOut['bearer']}`;
    const credentials = { type: 'bearer', token: stayOut['bearer'] };
    await deliverTo('bearer', `${receiver.url}/bearer`, { credentials });
  });

  it('with a header', async () => {
    stayOut['header'] = 'header-that-stays-out';
    wanted['/header'] = (headers) => headers['x-api-key'] === stayOut['header'];
    const credentials = { type: 'header', name: 'X-Api-Key', value: stayOut['header'] };
    await deliverTo('header', `${receiver.url}/header`, { credentials });
  });

  it('with an OAuth 2.0 token, fetched once, and once more when it is refused', async () => {
    stayOut['client secret'] = 'client-secret-that-stays-out';
    let good = -1;
    wanted['/oauth'] = ({ authorization }) => authorization === `Bearer ${tokens.tokens.at(good)}`;
    const credentials = {
      type: 'oauth2_client_credentials',
      token_url: tokens.url,
      client_id: 'posthorn',
      client_secret: stayOut['client secret'],
    };
    await deliverTo('oauth', `${receiver.url}/oauth`, { credentials });
    expect(tokens.requests).toHaveLength(1);
    expect(tokens.requests[0]!.authorization).toBe(basic(`posthorn:${stayOut['client secret']}`));

    // The token server takes back what it gave: the same attempt goes on with another token, and says so.
    const { api } = posthorn;
    good = 1;
    const again = (await api.publish('oauth.done')).deliveries[0]!.id;
    expect(await api.delivery(again, '10s')).toMatchObject({ status: 'succeeded', attempt_count: 1 });
    expect(await api.attempts(again)).toMatchObject([{ status_code: 200, resent: true }]);
    expect(receiver.of(again)).toHaveLength(2);

    // It gives none any more: a failed attempt, with its reason.
    tokens.answer = (reply) =>
      void reply.writeHead(400).end(`{"error":"invalid_client","hint":"${stayOut['client secret']}"}`);
    good = 2;
    const failed = (await api.publish('oauth.done')).deliveries[0]!.id;
    await until('it is given up', async () => (await api.delivery(failed)).status === 'failed');
    const { host } = new URL(tokens.url);
    const attempts = await api.attempts(failed);
    expect(attempts).toHaveLength(3);
    // The first has a token that was refused; then there is none.
    expect(attempts[0]).toMatchObject({ status_code: 401 });
    expect(attempts.at(-1)).toMatchObject({ status_code: null, error_code: 'token_failed' });
    const { evidence, token } = (await api.get(`/v1/webhooks/subscriptions/${endpointIds.at(-1)}/health`)).body;
    const problem = `no token from ${host}: answered 400 (invalid_client)`;
    expect(evidence.last_failures[0].error_message).toBe(problem);
    expect(token).toMatchObject({ requests: 5, last_status_code: 400, last_error: problem });
    deliveryIds.push(again, failed);
    for (const [n, value] of tokens.tokens.entries()) stayOut[`token ${n}`] = value;
  });

  it('with its client certificate', async () => {
    const { a } = clientCertificates;
    stayOut['private key'] = a.private_key.split('\n')[1]!;
    const { port } = mutual.address() as AddressInfo;
    await deliverTo('mutual', `https://127.0.0.1:${port}/`, { client_certificate: a });
    expect(shown).toEqual(['client-a', 'client-a', 'client-a']);
    const { id } = await posthorn.api.createEndpoint(`https://127.0.0.1:${port}/`, ['nobody.done']);
    await posthorn.api.post(`/v1/webhooks/subscriptions/${id}/ping`);
    expect(shown).toHaveLength(3);
  });

  it('signed by Ed25519, through a rotation, by keys that its well-known URL publishes', async () => {
    const { api } = posthorn;
    wanted['/ed25519'] = () => true;
    const settings = { signature: 'standard_webhooks_ed25519' };
    const first = await deliverTo('signed', `${receiver.url}/ed25519`, settings);
    const id = endpointIds.at(-1)!;
    const publicKeys = async () => {
      const answer = await fetch(`${api.baseUrl}/.well-known/webhook-keys/${id}`);
      return ((await answer.json()) as { keys: { x: string }[] }).keys.map(({ x }) =>
        createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }),
      );
    };
    const verifiedBy = (delivery: string, key: ReturnType<typeof createPublicKey>) => {
      const { headers, body } = receiver.of(delivery)[0]!;
      const content = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body.toString()}`;
      const parts = String(headers['webhook-signature']).split(' ');
      return parts.map((part) =>
        verify(null, Buffer.from(content), key, Buffer.from(part.slice('v1a,'.length), 'base64')),
      );
    };
    const [old] = await publicKeys();
    expect(verifiedBy(first, old!)).toEqual([true]);
    await api.post(`/v1/webhooks/subscriptions/${id}/secrets`);
    const second = (await api.publish('signed.done')).deliveries[0]!.id;
    await api.delivery(second, '10s');
    const [current, before] = await publicKeys();
    expect(before!.equals(old!)).toBe(true);
    expect(verifiedBy(second, current!)).toEqual([true, false]);
    expect(verifiedBy(second, old!)).toEqual([false, true]);
  });
});

it('no credential is in any history, nor in any answer', async () => {
  expect(endpointIds).toHaveLength(6);
  const ids = [...deliveryIds, ...endpointIds.map((id) => `endpoint-health/${id}`)];
  const text = await readHistories(posthorn.core.temporal.client!, ids);
  for (const id of ids) expect(text).toContain(id.split('/').at(-1));
  for (const id of deliveryIds) answers += (await posthorn.api.get(`/v1/webhook-deliveries/${id}/attempts`)).text;
  for (const [name, value] of Object.entries(stayOut))
    expect([name, text.includes(value), answers.includes(value)]).toEqual([name, false, false]);
  expect(text + answers).not.toMatch(/whsk_/);
});
