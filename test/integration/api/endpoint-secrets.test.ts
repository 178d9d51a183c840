import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../../../src/telemetry/logger.js';
import { dumpDatabase, type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;
let log = '';

beforeAll(async () => {
  posthorn = await startApi({ log: createLogger('trace', { write: (line: string) => void (log += line) }) });
});
afterAll(() => posthorn.stop());

const path = '/v1/webhooks/subscriptions';
const hour = 3_600_000;
const day = 24 * hour;
const own = (text: string): string => `whsec_${Buffer.alloc(32, text).toString('base64')}`;

interface Secret {
  readonly id: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly current: boolean;
}

const create = () => posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['a']);
const rotate = (id: string, body?: unknown) => posthorn.api.post(`${path}/${id}/secrets`, body);
const list = async (id: string): Promise<Secret[]> => (await posthorn.api.get(`${path}/${id}/secrets`)).body.data;

/** What an attempt would sign with now, newest first. */
async function signing(id: string): Promise<string[]> {
  const rows = await posthorn.sql<{ sealed: string }>(
    `select sealed from endpoint_secrets where endpoint_id = $1 and (expires_at is null or expires_at > now()) order by seq desc`,
    [id],
  );
  return rows.map(({ sealed }) => posthorn.core.secrets.open(sealed, id));
}

/** Milliseconds until then, by the database's clock. */
async function remaining(time: string | null): Promise<number> {
  const [row] = await posthorn.sql<{ ms: number }>(
    `select (extract(epoch from $1::timestamptz - now()) * 1000)::float8 as ms`,
    [time],
  );
  return row!.ms;
}

describe('a rotation', () => {
  it('signs with the new secret at once, and with the one before for a day', async () => {
    const { id, secret } = await create();
    const answer = await rotate(id);
    expect(answer).toMatchObject({
      status: 201,
      body: {
        id: expect.stringMatching(/^sec_[0-9A-Z]{26}$/),
        secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
        created_at: expect.any(String),
        expires_at: null,
        current: true,
      },
    });
    expect(await signing(id)).toEqual([answer.body.secret, secret]);
    const secrets = await list(id);
    expect(secrets.map(({ current }) => current)).toEqual([true, false]);
    expect(secrets[0]!.id).toBe(answer.body.id);
    const ms = await remaining(secrets[1]!.expires_at);
    expect(ms).toBeGreaterThan(day - 60_000);
    expect(ms).toBeLessThanOrEqual(day);
  });

  it.each([1, hour, 30 * day])('overlaps for as long as was asked: %i ms', async (overlap) => {
    const { id } = await create();
    expect((await rotate(id, { overlap_ms: overlap })).status).toBe(201);
    const [row] = await posthorn.sql<{ ms: number }>(
      `select (extract(epoch from o.expires_at - n.created_at) * 1000)::float8 as ms from endpoint_secrets o, endpoint_secrets n
        where o.endpoint_id = $1 and n.endpoint_id = $1 and o.expires_at is not null and n.expires_at is null`,
      [id],
    );
    expect(Math.abs(row!.ms - overlap)).toBeLessThan(5_000);
  });

  it('without an overlap ends the one before at once, and leaves nothing of it', async () => {
    const { id } = await create();
    const { body } = await rotate(id, { overlap_ms: 0 });
    expect(await signing(id)).toEqual([body.secret]);
    expect(await list(id)).toMatchObject([{ id: body.id, current: true }]);
    expect(await posthorn.sql('select 1 from endpoint_secrets where endpoint_id = $1', [id])).toHaveLength(1);
  });

  it.each([-1, 30 * day + 1, 0.5, '1h', null])('refuses an overlap of %j', async (overlap) => {
    const { id, secret } = await create();
    expect(await rotate(id, { overlap_ms: overlap })).toMatchObject({
      status: 422,
      body: { code: 'invalid_field', field: 'overlap_ms', detail: expect.stringMatching(/30 days.*such as 86400000/) },
    });
    expect(await signing(id)).toEqual([secret]);
  });

  it('takes a secret of one’s own, once', async () => {
    const { id } = await create();
    const { id: other } = await create();
    expect(await rotate(id, { secret: own('a') })).toMatchObject({ status: 201, body: { secret: own('a') } });
    for (const body of [{ secret: own('a') }, { secret: own('a'), overlap_ms: 0 }]) {
      expect(await rotate(id, body)).toMatchObject({ status: 422, body: { code: 'invalid_field', field: 'secret' } });
    }
    expect((await rotate(id, { secret: own('b') })).status).toBe(201);
    // Also not the one before.
    expect((await rotate(id, { secret: own('a') })).status).toBe(422);
    expect((await signing(id)).slice(0, 2)).toEqual([own('b'), own('a')]);
    // Endpoints know nothing of each other.
    expect((await rotate(other, { secret: own('a') })).status).toBe(201);
  });

  it('several times in a row leaves every older secret its end, up to five live ones', async () => {
    const { id, secret } = await create();
    const values = [secret];
    const ends: (string | null)[] = [];
    for (const overlap of [4, 3, 2, 1]) {
      values.unshift((await rotate(id, { overlap_ms: overlap * hour })).body.secret);
      const secrets = await list(id);
      expect(await signing(id)).toEqual(values);
      // What had an end before keeps it.
      expect(secrets.slice(2).map(({ expires_at }) => expires_at)).toEqual(ends);
      ends.unshift(secrets[1]!.expires_at);
    }
    const full = await list(id);
    const sixth = await rotate(id);
    expect(sixth).toMatchObject({
      status: 409,
      body: { code: 'too_many_secrets', detail: expect.stringContaining('DELETE') },
    });
    expect(await list(id)).toEqual(full);
    // One that ends at once makes room for the next one.
    expect((await rotate(id, { overlap_ms: 0 })).status).toBe(201);
    expect(await list(id)).toHaveLength(5);
    expect((await posthorn.api.delete(`${path}/${id}/secrets/${full.at(-1)!.id}`)).status).toBe(204);
    expect((await rotate(id)).status).toBe(201);
  });

  it('counts only those that have not ended', async () => {
    const { id } = await create();
    for (let n = 0; n < 4; n++) expect((await rotate(id)).status).toBe(201);
    await posthorn.sql(
      `update endpoint_secrets set expires_at = now() - interval '1 s' where endpoint_id = $1 and expires_at is not null`,
      [id],
    );
    expect(await list(id)).toHaveLength(1);
    expect((await rotate(id)).status).toBe(201);
    expect(await list(id)).toHaveLength(2);
    expect(await posthorn.sql('select 1 from endpoint_secrets where endpoint_id = $1', [id])).toHaveLength(2);
  });

  it('waits for others of the same endpoint: four of eight at once, and one current secret', async () => {
    const { id } = await create();
    const answers = await Promise.all(Array.from({ length: 8 }, () => rotate(id)));
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 201, 201, 201, 409, 409, 409, 409]);
    const secrets = await list(id);
    expect(secrets.filter(({ current }) => current)).toHaveLength(1);
    expect(secrets).toHaveLength(5);
    const created = secrets.map(({ created_at }) => created_at);
    expect(created).toEqual([...created].sort().toReversed());
    // The same value from two sides at once is one secret.
    const { id: other } = await create();
    const same = await Promise.all([1, 2, 3].map(() => rotate(other, { secret: own('c') })));
    expect(same.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 422, 422]);
  });

  it('is the end of a refusal, and is told to the workflow then', async () => {
    const { id } = await create();
    const health = async () =>
      (await posthorn.sql('select health_version::int, refused_since, version from endpoints where id = $1', [id]))[0];
    await rotate(id);
    expect(await health()).toEqual({ health_version: 1, refused_since: null, version: 1 });
    await posthorn.sql('update endpoints set refused_since = now() where id = $1', [id]);
    await rotate(id);
    expect(await health()).toEqual({ health_version: 2, refused_since: null, version: 1 });
  });

  it('goes on where an old secret can’t be opened any more', async () => {
    const { id } = await create();
    await posthorn.sql(`update endpoint_secrets set sealed = 'v1.gone.' || repeat('A', 60) where endpoint_id = $1`, [
      id,
    ]);
    expect((await rotate(id, { secret: own('d') })).status).toBe(201);
    expect(await list(id)).toHaveLength(2);
  });

  it('finds no endpoint that was deleted', async () => {
    const { id } = await create();
    const [secret] = await list(id);
    await posthorn.api.delete(`${path}/${id}`);
    const answers = [
      await rotate(id),
      await posthorn.api.get(`${path}/${id}/secrets`),
      await posthorn.api.delete(`${path}/${id}/secrets/${secret!.id}`),
    ];
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(answers[0]!.body.detail).toContain(id);
  });
});

describe('ending a secret', () => {
  it('takes an old one away at once', async () => {
    const { id } = await create();
    const { body } = await rotate(id);
    const old = (await list(id))[1]!.id;
    expect(await posthorn.api.delete(`${path}/${id}/secrets/${old}`)).toMatchObject({ status: 204, text: '' });
    expect(await signing(id)).toEqual([body.secret]);
    expect(await posthorn.api.delete(`${path}/${id}/secrets/${old}`)).toMatchObject({
      status: 404,
      body: { detail: expect.stringContaining('secret') },
    });
  });

  it('is refused for the current one', async () => {
    const { id, secret } = await create();
    const [current] = await list(id);
    expect(await posthorn.api.delete(`${path}/${id}/secrets/${current!.id}`)).toMatchObject({
      status: 409,
      body: { code: 'secret_in_use', detail: expect.stringMatching(/rotate first/) },
    });
    expect(await signing(id)).toEqual([secret]);
  });

  it('finds no secret of another endpoint', async () => {
    const [{ id }, { id: other }] = [await create(), await create()];
    await rotate(other);
    const foreign = (await list(other))[1]!.id;
    expect((await posthorn.api.delete(`${path}/${id}/secrets/${foreign}`)).status).toBe(404);
    expect(await list(other)).toHaveLength(2);
    expect((await posthorn.api.delete(`${path}/${id}/secrets/sec_%00`)).status).toBe(404);
  });
});

it('no secret is in a list, an error, the database or the log', async () => {
  const { id, secret } = await create();
  const answers = [
    (await rotate(id, { secret: own('grep-me') })).status === 201,
    await posthorn.api.get(`${path}/${id}/secrets`),
    await rotate(id, { secret: own('grep-me') }),
    await rotate(id, { secret: `${own('grep-me')}=` }),
    await rotate(id, { secret: own('grep-me'), other: own('grep-me') }),
    await rotate(id, `{"secret":"${own('grep-me')}"`),
  ];
  await posthorn.sql('alter table endpoint_secrets rename column sealed to renamed');
  const broken = await rotate(id, { secret: own('grep-me-too') });
  await posthorn.sql('alter table endpoint_secrets rename column renamed to sealed');
  expect(broken.status).toBe(500);
  expect(log).toContain('request failed');
  const texts = [...answers, broken].map((answer) => JSON.stringify(answer));
  const values = [secret, own('grep-me'), own('grep-me-too')].map((value) => value.replace('whsec_', ''));
  const dump = await dumpDatabase(posthorn.databaseUrl);
  for (const value of values) {
    for (const text of texts) expect(text).not.toContain(value);
    expect(dump.includes(value)).toBe(false);
    expect(log.includes(value)).toBe(false);
  }
});
