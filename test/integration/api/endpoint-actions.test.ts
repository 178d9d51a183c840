import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rawRequest, type RunningApi, startApi } from '../../support/api.js';
import { RecordingReceiver, testKey, until } from '../../support/posthorn.js';
import { endpointStatuses } from '../../../src/domain/closed-lists.js';

let posthorn: RunningApi;
let receiver: RecordingReceiver;

beforeAll(async () => {
  posthorn = await startApi();
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  await posthorn.stop();
  await receiver.stop();
});

const path = '/v1/webhooks/subscriptions';
/** What reached this endpoint. */
const received = (id: string) => receiver.requests.filter((request) => request.path === `/${id}`);

/** An endpoint whose path is its id. */
async function given(settings: Record<string, unknown> = {}): Promise<string> {
  const { id } = await posthorn.api.createEndpoint(`${receiver.url}/later`, ['a'], settings);
  await posthorn.sql('update endpoints set url = $2 where id = $1', [id, `${receiver.url}/${id}`]);
  return id;
}

const health = async (id: string) =>
  (
    await posthorn.sql(
      `select status, health_version, last_success_at, failing_since, refused_since, not_before, quick, updated_at
         from endpoints where id = $1`,
      [id],
    )
  )[0];

describe('a ping', () => {
  it('is posted now, signed, and answered with what came of it', async () => {
    receiver.answer = (_, reply) => void reply.writeHead(202).end('pong');
    const id = await given();
    const answer = await posthorn.api.post(`${path}/${id}/ping`);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toEqual({
      delivered: true,
      status_code: 202,
      error_code: null,
      error_message: null,
      duration_ms: expect.any(Number),
      response_body: 'pong',
    });
    const [request] = received(id);
    expect(request!.headers).toMatchObject({ 'webhook-signature': expect.stringMatching(/^t=\d+,v1=[0-9a-f]{64}$/) });
    expect(JSON.parse(request!.body.toString())).toMatchObject({ type: 'webhook.ping', data: {} });
  });

  it('counts neither for nor against the endpoint, and is no delivery', async () => {
    const id = await given();
    const before = await health(id);
    for (const status of [500, 410, 401, 200]) {
      receiver.answer = (_, reply) => void reply.writeHead(status, { 'retry-after': '3600' }).end();
      const answer = await until('the next ping is allowed', async () => {
        const tried = await posthorn.api.post(`${path}/${id}/ping`);
        return tried.status === 200 && tried;
      });
      expect(answer.body).toMatchObject({ delivered: status === 200, status_code: status });
    }
    expect(await health(id)).toEqual(before);
    expect(await posthorn.sql('select 1 from deliveries where endpoint_id = $1', [id])).toEqual([]);
  });

  it('says why nothing answered', async () => {
    const { id } = await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['a']);
    expect((await posthorn.api.post(`${path}/${id}/ping`)).body).toEqual({
      delivered: false,
      status_code: null,
      error_code: 'connection_refused',
      error_message: expect.any(String),
      duration_ms: expect.any(Number),
      response_body: null,
    });
  });

  it.each([
    ['long', 'é'.repeat(2_000), 'é'.repeat(512)],
    ['cut within a character', `x${'é'.repeat(2_000)}`, `x${'é'.repeat(511)}`],
    ['binary', Buffer.from([0xff, 0x00, 0x41]), '\ufffd\0A'],
    ['empty', '', ''],
  ])('shows the beginning of an answer that is %s', async (_, body, shown) => {
    receiver.answer = (_, reply) => void reply.writeHead(200).end(body);
    const id = await given();
    expect((await posthorn.api.post(`${path}/${id}/ping`)).body.response_body).toBe(shown);
  });

  it.each(endpointStatuses)('reaches an endpoint that is %s', async (status) => {
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    const id = await given();
    await posthorn.sql('update endpoints set status = $2 where id = $1', [id, status]);
    expect((await posthorn.api.post(`${path}/${id}/ping`)).body).toMatchObject({ delivered: true });
    expect(await health(id)).toMatchObject({ status });
  });

  it('reaches none that was deleted', async () => {
    const id = await given();
    await posthorn.api.delete(`${path}/${id}`);
    for (const action of ['ping', 'test', 'verify']) {
      const answer = await posthorn.api.post(`${path}/${id}/${action}`);
      expect(answer).toMatchObject({ status: 404, body: { code: 'not_found' } });
    }
    expect(received(id)).toEqual([]);
  });

  it('comes once a second to an endpoint, whatever others do', async () => {
    receiver.answer = (_, reply) => void reply.writeHead(200).end();
    const [id, other] = [await given(), await given()];
    const answers = await Promise.all([1, 2, 3].map(() => posthorn.api.post(`${path}/${id}/ping`)));
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 429, 429]);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.body).toMatchObject({ code: 'too_many_requests', detail: expect.stringContaining('second') });
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(received(id)).toHaveLength(1);
    expect((await posthorn.api.post(`${path}/${other}/test`)).status).toBe(200);
  });

  it('takes no body but an empty object', async () => {
    const id = await given();
    for (const action of ['ping', 'verify']) {
      expect(await posthorn.api.post(`${path}/${id}/${action}`, { x: 1 })).toMatchObject({
        status: 422,
        body: { code: 'unknown_field', field: 'x' },
      });
    }
    expect((await posthorn.api.post(`${path}/${id}/ping`, [])).status).toBe(422);
    expect((await posthorn.api.post(`${path}/${id}/ping`, {})).status).toBe(200);
  });
});

const deep = (levels: number): string => `{"data":${'['.repeat(levels)}${']'.repeat(levels)}}`;

describe('a test', () => {
  const data = '{ "b":1.0, "a" : "\\u00e9", "n": 12345678901234567890, "a":2 }';

  it('sends the data byte for byte, in the endpoint’s own envelope', async () => {
    receiver.answer = (_, reply) => void reply.writeHead(200).end('ok');
    const id = await given();
    const answer = await posthorn.api.post(`${path}/${id}/test`, `{"data": ${data} ,"type":"invoice.paid"}`);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ delivered: true, status_code: 200, response_body: 'ok' });
    const [request] = received(id);
    expect(request!.body.toString()).toContain(`"data":${data}`);
    expect(JSON.parse(request!.body.toString()).type).toBe('invoice.paid');
    expect(await posthorn.sql('select 1 from deliveries where endpoint_id = $1', [id])).toEqual([]);
    const events = await given({ profile: 'cloudevents' });
    await posthorn.api.post(`${path}/${events}/test`, `{"data":${data},"type":"invoice.paid"}`);
    const [cloud] = received(events);
    expect(cloud!.headers['content-type']).toBe('application/cloudevents+json; charset=utf-8');
    expect(cloud!.body.toString()).toContain(`"data":${data}`);
  });

  it.each([
    ['nothing', undefined],
    ['an empty body', ''],
    ['an empty object', '{}'],
  ])('has a type and data of its own where it is given %s', async (_, body) => {
    const id = await given();
    expect((await posthorn.api.post(`${path}/${id}/test`, body)).status).toBe(200);
    expect(JSON.parse(received(id)[0]!.body.toString())).toMatchObject({ type: 'webhook.test', data: {} });
  });

  it('is small enough for its call, and as deep as an event', async () => {
    const id = await given();
    expect((await posthorn.api.post(`${path}/${id}/test`, `{"data":"${'x'.repeat(262_144)}"}`)).status).toBe(413);
    expect(await posthorn.api.post(`${path}/${id}/test`, deep(129))).toMatchObject({
      status: 422,
      body: { code: 'too_deep', field: 'data' },
    });
    expect((await posthorn.api.post(`${path}/${id}/test`, deep(128))).status).toBe(200);
  });

  it.each([
    ['{"type":"a..b"}', 422, 'invalid_field', 'type'],
    ['{"type":7}', 422, 'invalid_field', 'type'],
    ['{"type":null}', 422, 'invalid_field', 'type'],
    ['{"type":"a","type":"b"}', 422, 'duplicate_field', 'type'],
    ['{"data":1,"d\\u0061ta":2}', 422, 'duplicate_field', 'data'],
    ['{"topic":1}', 422, 'unknown_field', 'topic'],
    ['[]', 422, 'invalid_field', undefined],
    ['"x"', 422, 'invalid_field', undefined],
    ['{"data":1', 400, 'malformed_json', undefined],
    ['{"data":1}{}', 400, 'malformed_json', undefined],
    ['\ufeff{"data":1}', 400, 'invalid_encoding', undefined],
    [Buffer.from([0x7b, 0xff, 0x7d]), 400, 'invalid_encoding', undefined],
  ])('that can’t be meant reaches nobody: %s', async (body, status, code, field) => {
    const id = await given();
    const answer = await posthorn.api.post(`${path}/${id}/test`, body);
    expect(answer, answer.text).toMatchObject({ status, body: { code } });
    expect(answer.body.field).toBe(field);
    expect(received(id)).toEqual([]);
  });
});

const consent = (id: string, token: string, method = 'GET', headers: Record<string, string> = {}) =>
  rawRequest(posthorn.port, { method, path: `${path}/${id}/consent/${token}`, headers });

/** Asked in a handshake, with this token in the address. */
async function asked(token: string): Promise<string> {
  const id = await given({ verification: 'handshake' });
  await posthorn.sql(
    `update endpoint_checks set passed_at = null, passed_way = null, next_at = now() + interval '1 h', sealed_token = $2
      where endpoint_id = $1 and kind = 'verification'`,
    [id, posthorn.core.secrets.seal(token, `${id}/consent`)],
  );
  await posthorn.sql(`update endpoints set status = 'pending_verification' where id = $1`, [id]);
  return id;
}

describe('a consent', () => {
  it.each(['GET', 'POST'])('needs no API key, only the address that was given: %s', async (method) => {
    const id = await asked('the-token_1');
    const answer = await consent(id, 'the-token_1', method, { 'webhook-allowed-rate': '120' });
    expect(answer).toMatchObject({ status: 200, text: 'ok' });
    expect(answer.headers['content-type']).toContain('text/plain');
    const { body } = await posthorn.api.get(`${path}/${id}`);
    expect(body).toMatchObject({
      status: 'active',
      allowed_rate_per_minute: 120,
      verification_state: { status: 'verified', verified_way: 'handshake' },
      effective: { rate_limit_per_second: 2 },
    });
  });

  it.each(['the-token_2', 'the-token_1x', 'THE-TOKEN_1', 'x'.repeat(100), '%00', '..%2f..', '*'])(
    'is nothing with another token: %s',
    async (token) => {
      const id = await asked('the-token_1');
      const answer = await consent(id, token);
      expect(answer).toMatchObject({ status: 404, body: { code: 'not_found' } });
      expect(answer.text).not.toContain('the-token');
      expect((await posthorn.api.get(`${path}/${id}`)).body.status).toBe('pending_verification');
    },
  );

  it('is nothing for another endpoint, and nothing after a change of the URL', async () => {
    const id = await asked('the-token_1');
    const other = await asked('the-token_2');
    expect((await consent(other, 'the-token_1')).status).toBe(404);
    expect((await consent('we_01KC0000000000000000000000', 'the-token_1')).status).toBe(404);
    await posthorn.api.call('PATCH', `${path}/${id}`, { url: `${receiver.url}/elsewhere` });
    expect((await consent(id, 'the-token_1')).status).toBe(404);
  });

  it('takes other methods for what they are', async () => {
    const id = await asked('the-token_1');
    const answer = await rawRequest(posthorn.port, {
      method: 'DELETE',
      path: `${path}/${id}/consent/the-token_1`,
      headers: { authorization: `Bearer ${testKey}` },
    });
    expect(answer.status).toBe(405);
  });
});
