import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseKeyRing } from '../../../src/config/key-ring.js';
import { SealedTextStore } from '../../../src/database/sealed-text-store.js';
import { reencrypt } from '../../../src/security/reencryption.js';
import { SecretBox } from '../../../src/security/secret-box.js';
import { type RunningApi, startApi } from '../../support/api.js';
import { testKeyRing } from '../../support/posthorn.js';
import { clientCertificates } from '../../support/tls/certificates.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

const path = '/v1/webhooks/subscriptions';
const newKey = `k_2:${Buffer.alloc(32, 9).toString('base64')}`;
const both = parseKeyRing(`${newKey},${testKeyRing}`);
const onlyNew = new SecretBox(parseKeyRing(newKey));

const run = (box = new SecretBox(both)) => reencrypt(new SealedTextStore(posthorn.core.db), box, 'k_2');
const totals = (results: Awaited<ReturnType<typeof run>>) => results.map(({ done, failed }) => [done, failed.length]);

/** All sealed texts, with what they were sealed for. */
const sealed = () =>
  posthorn.sql<{ sealed: string; context: string }>(
    `select sealed, endpoint_id as context from endpoint_secrets
     union all select sealed_headers, id || '/headers' from endpoints where sealed_headers is not null
     union all select sealed_credentials, id || '/credentials' from endpoints where sealed_credentials is not null
     union all select sealed_client_certificate, id || '/client-certificate' from endpoints where sealed_client_certificate is not null
     union all select sealed_token, endpoint_id || '/consent' from endpoint_checks where sealed_token is not null`,
  );
const opened = async (box: SecretBox) => (await sealed()).map((text) => box.open(text.sealed, text.context)).sort();

it('everything is encrypted with the first key of the ring, and then only that key is needed', async () => {
  const { api, core } = posthorn;
  const settings = { headers: { Authorization: 'Bearer 3f9a' } };
  const { id } = await api.createEndpoint('http://127.0.0.1:9/hook', ['a'], settings);
  for (let n = 0; n < 2; n++) await api.createEndpoint('http://127.0.0.1:9/hook', ['a'], settings);
  await api.post(`${path}/${id}/secrets`);
  const credentials = { type: 'bearer', token: '3f9a' };
  const signature = 'standard_webhooks_ed25519';
  const guarded = { credentials, client_certificate: clientCertificates.a, signature };
  await api.createEndpoint('https://hooks.example.com/', ['a'], guarded);
  await posthorn.sql('update endpoint_checks set sealed_token = $2 where endpoint_id = $1', [
    id,
    core.secrets.seal('a token', `${id}/consent`),
  ]);
  const before = await opened(core.secrets);
  expect(before).toHaveLength(12);
  expect(totals(await run())).toEqual([
    [6, 0],
    [3, 0],
    [1, 0],
    [1, 0],
    [1, 0],
  ]);
  expect(await opened(onlyNew)).toEqual(before);
  const after = await sealed();
  for (const text of after) expect(text.sealed).toMatch(/^v1\.k_2\./);

  // Nothing is left to do, and nothing is touched.
  expect(totals(await run())).toEqual([
    [0, 0],
    [0, 0],
    [0, 0],
    [0, 0],
    [0, 0],
  ]);
  expect(await sealed()).toEqual(after);

  // The API works with the new key alone.
  const renewed = await startApi({
    extra: { POSTHORN_ENCRYPTION_KEYS: newKey },
    databaseUrl: posthorn.databaseUrl,
  });
  try {
    expect((await renewed.api.get(`${path}/${id}`)).body.headers).toEqual({ Authorization: '***' });
    expect((await renewed.api.post(`${path}/${id}/secrets`)).status).toBe(201);
  } finally {
    await renewed.stop();
  }
});

it('more than a batch of them, and what no key opens stays as it is and is named', async () => {
  const { id, secret } = await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['a']);
  const old = new SecretBox(parseKeyRing(testKeyRing));
  await posthorn.sql(
    `insert into endpoint_secrets (id, endpoint_id, sealed, expires_at) select 'sec_' || n, $1, $2, now() from generate_series(1, 1100) n`,
    [id, old.seal(secret, id)],
  );
  await posthorn.sql(
    `update endpoint_secrets set sealed = 'v1.lost.' || repeat('A', 60) where id in ('sec_7', 'sec_1077')`,
  );
  // A text that stands where it doesn't belong doesn't open either.
  await posthorn.sql(`update endpoint_secrets set sealed = $1 where id = 'sec_500'`, [old.seal(secret, 'we_other')]);
  const [secrets] = await run();
  expect(secrets!.done).toBe(1_098);
  expect(secrets!.failed.map(({ key }) => key).sort()).toEqual(['sec_1077', 'sec_500', 'sec_7']);
  expect(secrets!.failed.find(({ key }) => key === 'sec_7')!.why).toContain("'lost'");
  expect(JSON.stringify(secrets)).not.toContain(secret);
  const rest = await posthorn.sql<{ n: number }>(
    `select count(*)::int as n from endpoint_secrets where not starts_with(sealed, 'v1.k_2.')`,
  );
  expect(rest).toEqual([{ n: 3 }]);
});

it('a text that somebody changes meanwhile stays as they left it', async () => {
  const { id } = await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['a'], { headers: { 'X-A': 'before' } });
  const changed = posthorn.core.secrets.seal('{"X-A":"after"}', `${id}/headers`);
  const store = new SealedTextStore(posthorn.core.db);
  const replace = store.replace.bind(store);
  store.replace = async (column, old, sealedText) => {
    if (old.context === `${id}/headers`)
      await posthorn.sql('update endpoints set sealed_headers = $2 where id = $1', [id, changed]);
    return replace(column, old, sealedText);
  };
  const results = await reencrypt(store, new SecretBox(both), 'k_2');
  expect(results.find(({ name }) => name === 'headers of endpoints')!.done).toBe(0);
  const [row] = await posthorn.sql('select sealed_headers from endpoints where id = $1', [id]);
  expect(row).toEqual({ sealed_headers: changed });
});
