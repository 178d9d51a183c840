import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SecretBox } from '../../../src/security/secret-box.js';
import { type RunningApi, startApi } from '../../support/api.js';
import { clientCertificates } from '../../support/tls/certificates.js';

let posthorn: RunningApi;
beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

const path = '/v1/webhooks/subscriptions';
const url = 'https://hooks.example.com/in';
const patch = (at: string, body: object) => posthorn.api.call('PATCH', at, body);
const create = (body: object) => posthorn.api.post(path, { url, events: ['a'], ...body });
const keysOf = (id: string) => fetch(`${posthorn.api.baseUrl}/.well-known/webhook-keys/${id}`);
const secret = 'secret-that-stays-out';
const oauth = {
  type: 'oauth2_client_credentials',
  token_url: 'https://auth.example.com/token',
  client_id: 'client',
  client_secret: secret,
};
const kept = async (id: string) => {
  const [row] = await posthorn.sql<{ sealed: string }>(
    'select sealed_credentials as sealed from endpoints where id = $1',
    [id],
  );
  const box: SecretBox = posthorn.core.secrets;
  return row?.sealed ? (JSON.parse(box.open(row.sealed, `${id}/credentials`)) as unknown) : null;
};

describe('credentials', () => {
  it.each([
    [
      { type: 'basic', username: secret, password: secret },
      { type: 'basic', username: '***', password: '***' },
    ],
    [
      { type: 'bearer', token: secret },
      { type: 'bearer', token: '***' },
    ],
    [
      { type: 'header', name: 'X-Api-Key', value: secret },
      { type: 'header', name: 'X-Api-Key', value: '***' },
    ],
    [
      { ...oauth, scope: 'a b', client_authentication: 'client_secret_post' },
      { ...oauth, client_secret: '***', scope: 'a b', audience: null, client_authentication: 'client_secret_post' },
    ],
  ])('of each type are kept encrypted and shown masked: %o', async (given, shown) => {
    const created = await create({ credentials: given });
    expect([created.status, created.body.credentials]).toEqual([201, shown]);
    const { id } = created.body as { id: string };
    const answers = [created, await posthorn.api.get(`${path}/${id}`), await posthorn.api.get(path)];
    for (const { text } of answers) expect(text).not.toContain(secret);
    const rows = await posthorn.sql('select * from endpoints where id = $1', [id]);
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(await kept(id)).toMatchObject(given);

    // What was read may be written back; nothing changes then.
    const again = await patch(`${path}/${id}`, { credentials: shown });
    expect([again.status, again.headers.get('etag')]).toEqual([200, created.headers.get('etag')]);
    expect(await kept(id)).toMatchObject(given);
    const gone = await patch(`${path}/${id}`, { credentials: null });
    expect([gone.body.credentials, await kept(id)]).toEqual([null, null]);
  });

  it('in a URL are taken out of it, become Basic, and are never shown again', async () => {
    const created = await create({ url: `https://us%40er:pa%3Ass:${secret}@hooks.example.com/in?a=b@c` });
    expect(created.status).toBe(201);
    const { id } = created.body as { id: string };
    expect(created.body).toMatchObject({
      url: 'https://hooks.example.com/in?a=b@c',
      credentials: { type: 'basic', username: '***', password: '***' },
    });
    expect(created.text).not.toMatch(new RegExp(`${secret}|us%40er|us@er`));
    expect(await kept(id)).toEqual({ type: 'basic', username: 'us@er', password: `pa:ss:${secret}` });
    const moved = await patch(`${path}/${id}`, { url: 'https://key@hooks.example.com/in' });
    expect([moved.status, moved.body.url]).toEqual([200, url]);
    expect(await kept(id)).toEqual({ type: 'basic', username: 'key', password: '' });
    // Without any in it, those that are there stay.
    await patch(`${path}/${id}`, { url: 'https://hooks.example.com/other' });
    expect(await kept(id)).toEqual({ type: 'basic', username: 'key', password: '' });
  });

  const bad: [string, object, string][] = [
    ['of no type', { credentials: { token: secret } }, 'credentials.type'],
    ['of an unknown type', { credentials: { type: 'digest', token: secret } }, 'credentials.type'],
    ['that are a text', { credentials: secret }, 'credentials'],
    [
      'with a colon in the user name',
      { credentials: { type: 'basic', username: `a:${secret}`, password: '' } },
      'credentials.username',
    ],
    ['with a line break', { credentials: { type: 'bearer', token: `${secret}\r\nX: y` } }, 'credentials.token'],
    ['with another field', { credentials: { type: 'bearer', token: 'a', username: secret } }, 'credentials.username'],
    [
      'in a header that is ours',
      { credentials: { type: 'header', name: 'Webhook-Signature', value: secret } },
      'credentials.name',
    ],
    [
      'in a header twice',
      { credentials: { type: 'header', name: 'X-Key', value: secret }, headers: { 'x-key': 'a' } },
      'headers.x-key',
    ],
    [
      'beside an Authorization header',
      { credentials: { type: 'bearer', token: secret }, headers: { authorization: 'a' } },
      'headers.authorization',
    ],
    [
      'beside those in the URL',
      { url: `https://a:${secret}@hooks.example.com/`, credentials: { type: 'bearer', token: 'a' } },
      'credentials',
    ],
    [
      'in the URL beside an Authorization header',
      { url: `https://a:${secret}@hooks.example.com/`, headers: { Authorization: 'a' } },
      'headers.Authorization',
    ],
    ['in a URL, badly encoded', { url: `https://a:%FF${secret}@hooks.example.com/` }, 'url'],
    ['in a URL that has no host', { url: `https://${secret}@` }, 'url'],
    ['empty in a URL', { url: 'https://@hooks.example.com/' }, 'url'],
    ['in a URL inside', { url: `https://a:${secret}@10.0.0.1/` }, 'url'],
    [
      'from a token server inside',
      { credentials: { ...oauth, token_url: 'https://10.0.0.1/token' } },
      'credentials.token_url',
    ],
    [
      'from a token server by http',
      { credentials: { ...oauth, token_url: 'http://auth.example.com/' } },
      'credentials.token_url',
    ],
    [
      'from a token URL with a password',
      { credentials: { ...oauth, token_url: `https://a:${secret}@auth.example.com/` } },
      'credentials.token_url',
    ],
    [
      'shown in an unknown way',
      { credentials: { ...oauth, client_authentication: 'none' } },
      'credentials.client_authentication',
    ],
    ['that keep what is not there', { credentials: { type: 'bearer', token: '***' } }, 'credentials.token'],
  ];
  it.each(bad)('%s are refused by a 422 that names the field and repeats nothing', async (_what, body, field) => {
    const answer = await create(body);
    expect([answer.status, answer.body.field]).toEqual([422, field]);
    expect(answer.text).not.toContain(secret);
  });

  it('conflict with a header also where only one of them is written', async () => {
    const { id } = (await create({ credentials: { type: 'bearer', token: 'a' } })).body as { id: string };
    const headers = await patch(`${path}/${id}`, { headers: { Authorization: 'b' } });
    expect([headers.status, headers.body.field]).toEqual([422, 'headers.Authorization']);
    const swapped = await patch(`${path}/${id}`, { headers: { Authorization: 'b' }, credentials: null });
    expect(swapped.status).toBe(200);
    const back = await patch(`${path}/${id}`, { credentials: { type: 'bearer', token: 'a' } });
    expect([back.status, back.body.field]).toEqual([422, 'headers.Authorization']);
  });

  it('for one token server are not sent to another by who does not know them', async () => {
    const { id } = (await create({ credentials: oauth })).body as { id: string };
    const thief = { ...oauth, token_url: 'https://thief.example.com/', client_secret: '***' };
    const answer = await patch(`${path}/${id}`, { credentials: thief });
    expect([answer.status, answer.body.field]).toEqual([422, 'credentials.client_secret']);
    expect(await kept(id)).toMatchObject(oauth);
  });

  it('that no key opens break no list, and can be replaced', async () => {
    const { id } = (await create({ credentials: oauth })).body as { id: string };
    await posthorn.sql(`update endpoints set sealed_credentials = 'v1.gone.' || repeat('A', 60) where id = $1`, [id]);
    expect((await posthorn.api.get(`${path}/${id}`)).body.credentials).toEqual({ type: 'unreadable' });
    expect((await posthorn.api.get(path)).status).toBe(200);
    const renewed = await patch(`${path}/${id}`, { credentials: { type: 'bearer', token: 'a' } });
    expect(renewed.body.credentials).toEqual({ type: 'bearer', token: '***' });
  });
});

describe('a client certificate', () => {
  const { a, b, expired } = clientCertificates;

  it('is kept encrypted, and shown without its key', async () => {
    const created = await create({ client_certificate: a });
    expect(created.status).toBe(201);
    expect(created.body.client_certificate).toEqual({
      subject: 'O=Posthorn tests, CN=client-a',
      fingerprint_sha256: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/) as string,
      valid_from: expect.any(String) as string,
      expires_at: expect.stringMatching(/^2126-/) as string,
    });
    expect(created.text).not.toContain('PRIVATE KEY');
    const rows = await posthorn.sql('select * from endpoints where id = $1', [created.body.id]);
    expect(JSON.stringify(rows)).not.toContain('PRIVATE KEY');
    const { status, body } = await patch(`${path}/${created.body.id}`, { client_certificate: b });
    expect([status, body.client_certificate.subject]).toEqual([200, 'O=Posthorn tests, CN=client-b']);
    const gone = await patch(`${path}/${created.body.id}`, { client_certificate: null });
    expect(gone.body.client_certificate).toBeNull();
  });

  it.each([
    ['with another one’s key', { ...a, private_key: b.private_key }, 'private_key', /another certificate/],
    ['that has expired', expired, 'certificate', /has expired, on 2021-01-01T00:00:00.000Z/],
    ['that is none', { ...a, certificate: 'hello' }, 'certificate', /PEM/],
    ['that is damaged', { ...a, certificate: a.certificate.replace(/M/g, 'N') }, 'certificate', /PEM/],
    ['without a key', { ...a, private_key: a.certificate }, 'private_key', /one private key/],
    [
      'with an encrypted key',
      { ...a, private_key: '-----BEGIN ENCRYPTED PRIVATE KEY-----' },
      'private_key',
      /passphrase/,
    ],
    ['with a text beside it', { ...a, certificate: `${a.certificate}\nhello` }, 'certificate', /PEM/],
  ])('%s is refused', async (_what, client_certificate, field, rule) => {
    const answer = await create({ client_certificate });
    expect([answer.status, answer.body.field]).toEqual([422, `client_certificate.${field}`]);
    expect(answer.body.detail).toMatch(rule);
    expect(answer.text).not.toMatch(/PRIVATE KEY-----/);
  });

  it('needs https', async () => {
    const answer = await create({ url: 'http://127.0.0.1:9/', client_certificate: a });
    expect([answer.status, answer.body.field]).toEqual([422, 'client_certificate']);
    const { id } = (await create({ client_certificate: a })).body as { id: string };
    const moved = await patch(`${path}/${id}`, { url: 'http://127.0.0.1:9/' });
    expect([moved.status, moved.body.field]).toEqual([422, 'client_certificate']);
  });
});

describe('Ed25519 keys', () => {
  const signature = 'standard_webhooks_ed25519';

  it('are made with the endpoint, shown by their public half, and published to everybody', async () => {
    const created = await create({ signature });
    const { id, public_key } = created.body as { id: string; public_key: string };
    expect(public_key).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
    const secrets = (await posthorn.api.get(`${path}/${id}/secrets`)).body.data as { type: string; id: string }[];
    expect(secrets.map(({ type }) => type).sort()).toEqual(['ed25519', 'hmac']);
    const answer = await keysOf(id);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'public, max-age=60']);
    const text = await answer.text();
    expect(JSON.parse(text)).toEqual({
      keys: [
        {
          kty: 'OKP',
          crv: 'Ed25519',
          x: Buffer.from(public_key.slice(5), 'base64').toString('base64url'),
          alg: 'EdDSA',
          use: 'sig',
          kid: secrets.find(({ type }) => type === 'ed25519')!.id,
          public_key,
          expires_at: null,
        },
      ],
    });
    for (const shown of [created.text, text]) expect(shown).not.toMatch(/whsk_/);
  });

  it('are rotated with an overlap, and the private one is never shown', async () => {
    const { id, public_key } = (await create({ signature })).body as { id: string; public_key: string };
    const rotated = await posthorn.api.post(`${path}/${id}/secrets`);
    expect([rotated.status, rotated.body.type, rotated.body.secret]).toEqual([201, 'ed25519', null]);
    const { keys } = (await (await keysOf(id)).json()) as { keys: { public_key: string; expires_at: string | null }[] };
    expect(keys.map((key) => key.public_key)).toEqual([rotated.body.public_key, public_key]);
    expect(keys.map(({ expires_at }) => expires_at === null)).toEqual([true, false]);
    expect((await posthorn.api.get(`${path}/${id}`)).body.public_key).toBe(rotated.body.public_key);
    await posthorn.api.post(`${path}/${id}/secrets`, { overlap_ms: 0 });
    expect(((await (await keysOf(id)).json()) as { keys: unknown[] }).keys).toHaveLength(2);
  });

  it('may be made before the endpoint signs by them, and are made at the latest then', async () => {
    const early = (await create({})).body as { id: string };
    expect((await keysOf(early.id)).status).toBe(404);
    const made = await posthorn.api.post(`${path}/${early.id}/secrets`, { type: 'ed25519' });
    const changed = await patch(`${path}/${early.id}`, { signature });
    expect(changed.body.public_key).toBe(made.body.public_key);
    const late = (await create({})).body as { id: string };
    expect((await patch(`${path}/${late.id}`, { signature })).body.public_key).toMatch(/^whpk_/);
    // And the way back: its other secret is as it was.
    expect((await patch(`${path}/${late.id}`, { signature: null })).status).toBe(200);
    expect((await posthorn.api.post(`${path}/${late.id}/secrets`)).body.type).toBe('hmac');
  });

  it('may be brought along, in Standard Webhooks’ form and in no other', async () => {
    const { id } = (await create({ signature })).body as { id: string };
    const own = 'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==';
    const rotated = await posthorn.api.post(`${path}/${id}/secrets`, { secret: own });
    expect(rotated.body.public_key).toBe('whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=');
    expect(rotated.text).not.toContain(own);
    for (const body of [
      { secret: own.replace('6Xb', '7Xb') },
      { secret: own.slice(0, -4) },
      { secret: 'whsk_' },
      { secret: own, type: 'hmac' },
      { type: 'rsa' },
    ]) {
      const answer = await posthorn.api.post(`${path}/${id}/secrets`, body);
      expect([answer.status, answer.body.field]).toEqual([422, 'secret' in body ? 'secret' : 'type']);
      expect(answer.text).not.toContain('Xb/dCcHp');
    }
  });

  it('of an endpoint that is deleted, unknown or badly named are nobody’s', async () => {
    const { id } = (await create({ signature })).body as { id: string };
    await posthorn.api.delete(`${path}/${id}`);
    for (const name of [id, 'we_01KC0000000000000000000009', 'x']) expect((await keysOf(name)).status).toBe(404);
  });
});
