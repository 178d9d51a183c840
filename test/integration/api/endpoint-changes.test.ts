import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;
/** The same database, where new endpoints have to be verified. */
let strict: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
  strict = await startApi({
    extra: { POSTHORN_VERIFICATION_REQUIRED: 'on' },
    databaseUrl: posthorn.databaseUrl,
  });
});
afterAll(async () => {
  await strict.stop();
  await posthorn.stop();
});

const path = '/v1/webhooks/subscriptions';
const url = 'http://127.0.0.1:9/hook';
const otherUrl = 'http://127.0.0.1:9/other';

const patch = (id: string, body: unknown, headers: Record<string, string> = {}, api = posthorn.api) =>
  api.call('PATCH', `${path}/${id}`, body, headers);

async function row(id: string) {
  const [found] = await posthorn.sql(
    `select e.status, e.status_reason, e.version, e.health_version::int, e.health_sweep_after > now() as told_later,
            e.failing_since, e.refused_since, e.last_success_at, e.not_before, e.quick, e.allowed_rate_per_minute,
            c.tries, c.next_at <= now() as due, c.passed_at, c.passed_way, c.last_error, c.sealed_token
       from endpoints e left join endpoint_checks c on c.endpoint_id = e.id and c.kind = 'verification' where e.id = $1`,
    [id],
  );
  return found!;
}

/** An endpoint that was verified, and has a bad past. */
async function given(status: string, reason: string | null = null): Promise<string> {
  const { id } = await strict.api.createEndpoint(url, [`changed.${status}`]);
  await posthorn.sql(
    `update endpoints set status = $2, status_reason = $3, failing_since = now(), refused_since = now(), last_success_at = now(),
            not_before = now() + interval '1 h', quick = false, allowed_rate_per_minute = 5 where id = $1`,
    [id, status, reason],
  );
  await posthorn.sql(
    `update endpoint_checks set tries = 3, next_at = null, last_at = now(), last_error = 'x', passed_at = now(), passed_way = 'ping',
            sealed_token = 'v1.k1.x' where endpoint_id = $1`,
    [id],
  );
  return id;
}

const noHistory = {
  failing_since: null,
  refused_since: null,
  last_success_at: null,
  not_before: null,
  quick: true,
  allowed_rate_per_minute: null,
};

describe('a new endpoint', () => {
  it('waits to be verified where that is required, and its workflow is to know', async () => {
    const made = await strict.api.post(path, { url, events: ['a'] });
    expect(made.body).toMatchObject({
      status: 'pending_verification',
      verification_state: { status: 'pending', tries: 0, next_try_at: expect.any(String), verified_at: null },
    });
    expect(await row(made.body.id)).toMatchObject({ health_version: 1, told_later: true, due: true, passed_at: null });
  });

  it('is active at once where it is not', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    expect(await row(id)).toMatchObject({
      status: 'active',
      health_version: 1,
      due: null,
      passed_at: expect.any(Date),
      passed_way: null,
    });
  });
});

describe('a change', () => {
  it('of one setting leaves all others as they are', async () => {
    const made = await posthorn.api.post(path, {
      url,
      events: ['a'],
      metadata: { a: '1' },
      headers: { 'X-A': 'a' },
      timeout_ms: 3_000,
    });
    const { secret: _, ...before } = made.body;
    const { body } = await patch(before.id, { description: 'new' });
    expect(body).toEqual({ ...before, description: 'new', updated_at: expect.any(String) });
    expect(body.updated_at >= before.updated_at).toBe(true);
  });

  it('replaces events, waits, metadata and headers as a whole, and what is wanted follows the events', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['before.change'], {
      metadata: { a: '1', b: '2' },
      headers: { 'X-A': 'a', 'X-B': 'b' },
    });
    const { body } = await patch(id, {
      events: ['after.*', 'after.*'],
      metadata: { c: '3' },
      headers: { 'X-C': 'c' },
      retry_waits_ms: [500],
    });
    expect(body).toMatchObject({ events: ['after.*'], retry_waits_ms: [500] });
    expect([body.metadata, body.headers]).toEqual([{ c: '3' }, { 'X-C': 'c' }]);
    expect((await posthorn.api.publish('before.change')).deliveries).toEqual([]);
    expect((await posthorn.api.publish('after.change')).deliveries.map((d) => d.endpoint_id)).toEqual([id]);
  });

  it.each([
    ['nothing', {}],
    [
      'what is so already',
      { description: null, events: ['a'], metadata: {}, headers: {}, url: 'HTTP://127.0.0.1:9/hook' },
    ],
  ])('to %s changes nothing', async (_, body) => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    const before = await posthorn.api.get(`${path}/${id}`);
    const answer = await patch(id, body);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toEqual(before.body);
    expect(answer.headers.get('etag')).toBe(before.headers.get('etag'));
    expect(await row(id)).toMatchObject({ version: 1, health_version: 1 });
  });

  it.each([
    ['nothing at all', undefined],
    ['a list', []],
    ['null', 'null'],
  ])('needs an object: %s', async (_, body) => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    const answer = await patch(id, body);
    expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_field', detail: /object/ } as never });
  });

  it('that is refused in one field changes no other', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    const answer = await patch(id, { description: 'new', timeout_ms: 1, envelope: 'xml' });
    expect(answer.status).toBe(422);
    expect(answer.body.errors.map(({ field }: { field: string }) => field).sort()).toEqual(['envelope', 'timeout_ms']);
    expect((await posthorn.api.get(`${path}/${id}`)).body.description).toBeNull();
  });

  it.each([
    [{ description: 'x' }, 1],
    [{ timeout_ms: 5_000 }, 1],
    [{ owner_email: 'hooks@example.com' }, 2],
    [{ ping_interval_ms: 60_000 }, 2],
    [{ verification: 'ping' }, 2],
    [{ expires_at: new Date(Date.now() + 86_400_000).toISOString() }, 2],
    [{ url: otherUrl }, 2],
  ])('is told to the workflow of the endpoint if it has to act: %j', async (body, version) => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    expect((await patch(id, body)).status).toBe(200);
    expect(await row(id)).toMatchObject({ version: 2, health_version: version, told_later: true });
  });

  it('finds no endpoint that was deleted', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    await posthorn.api.delete(`${path}/${id}`);
    expect(await patch(id, { description: 'x' })).toMatchObject({ status: 404, body: { code: 'not_found' } });
  });
});

describe('the ETag', () => {
  it('rises with every change, and is the same in all answers', async () => {
    const made = await posthorn.api.post(path, { url, events: ['a'] });
    const { id } = made.body;
    expect(made.headers.get('etag')).toBe('"1"');
    expect((await posthorn.api.get(`${path}/${id}`)).headers.get('etag')).toBe('"1"');
    expect((await patch(id, { description: 'x' })).headers.get('etag')).toBe('"2"');
    expect((await posthorn.api.get(`${path}/${id}`)).headers.get('etag')).toBe('"2"');
  });

  it.each([
    ['"1"', 200],
    ['*', 200],
    ['"0", "1"', 200],
    ['W/"1", "1"', 200],
    ['"2"', 412],
    ['W/"1"', 412],
    ['"0", "2"', 412],
    ['""', 412],
    ['1', 422],
    ['"1', 422],
    ['"1" "2"', 422],
    ['*, "1"', 422],
  ])('as If-Match: %s → %i', async (ifMatch, status) => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    const answer = await patch(id, { description: 'x' }, { 'if-match': ifMatch });
    expect(answer.status, answer.text).toBe(status);
    const { body } = await posthorn.api.get(`${path}/${id}`);
    expect(body.description).toBe(status === 200 ? 'x' : null);
    if (status === 412) expect(answer.body).toMatchObject({ code: 'precondition_failed', field: 'If-Match' });
    if (status === 412) expect(answer.body.detail).toContain('"1"');
  });

  it('lets one of several changes at once win, and no change is lost without it', async () => {
    const { id } = await posthorn.api.createEndpoint(url, ['a']);
    const racing = await Promise.all(
      Array.from({ length: 12 }, (_, n) => patch(id, { description: `${n}` }, { 'if-match': '"1"' })),
    );
    const won = racing.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    expect(racing.filter(({ status }) => status === 412)).toHaveLength(11);
    expect((await posthorn.api.get(`${path}/${id}`)).body.description).toBe(won[0]!.body.description);
    const free = [
      { metadata: { a: '1' } },
      { timeout_ms: 2_000 },
      { headers: { 'X-A': 'a' } },
      { max_in_flight: 2 },
      { payload: 'thin' },
    ];
    const answers = await Promise.all(free.map((body) => patch(id, body)));
    expect(new Set(answers.map(({ headers }) => headers.get('etag'))).size).toBe(5);
    expect((await posthorn.api.get(`${path}/${id}`)).body).toMatchObject(Object.assign({}, ...free));
    expect(await row(id)).toMatchObject({ version: 7 });
  });
});

describe('another URL', () => {
  it('has to be verified, has no history, and what waits is held', async () => {
    const id = await given('active');
    const { deliveries } = await posthorn.api.publish('changed.active');
    const delivery = deliveries.find((d) => d.endpoint_id === id)!;
    const before = await row(id);
    const answer = await patch(id, { url: otherUrl }, {}, strict.api);
    expect(answer.body).toMatchObject({
      url: otherUrl,
      status: 'pending_verification',
      status_reason: null,
      verification_state: {
        status: 'pending',
        tries: 0,
        next_try_at: expect.any(String),
        last_try_at: null,
        last_error: null,
        verified_at: null,
        verified_way: null,
      },
    });
    expect(await row(id)).toMatchObject({
      ...noHistory,
      due: true,
      // Who was asked at the old URL can't agree for the new one.
      sealed_token: null,
      health_version: (before['health_version'] as number) + 1,
      told_later: true,
    });
    expect(await posthorn.api.delivery(delivery.id)).toMatchObject({ status: 'held', reason: 'endpoint_unverified' });
  });

  it.each([
    ['pending_verification', null, 'pending_verification', null],
    ['disabled', 'verification_expired', 'pending_verification', null],
    ['paused', null, 'paused', null],
    ['disabled', 'gone', 'disabled', 'gone'],
    ['expired', null, 'expired', null],
  ])('of an endpoint that is %s (%s) leaves it %s', async (status, reason, after, reasonAfter) => {
    const id = await given(status, reason);
    const { body } = await patch(id, { url: otherUrl }, {}, strict.api);
    expect(body).toMatchObject({
      status: after,
      status_reason: reasonAfter,
      verification_state: { status: 'pending' },
    });
    expect(await row(id)).toMatchObject({ ...noHistory, due: true, passed_at: null });
  });

  it('is used at once where nothing has to be verified', async () => {
    const id = await given('active');
    const { deliveries } = await posthorn.api.publish('changed.active');
    const delivery = deliveries.find((d) => d.endpoint_id === id)!;
    const { body } = await patch(id, { url: otherUrl });
    expect(body).toMatchObject({
      status: 'active',
      verification_state: { status: 'not_required', verified_way: null },
    });
    expect(await row(id)).toMatchObject({ ...noHistory, due: null });
    expect(await posthorn.api.delivery(delivery.id)).toMatchObject({ status: 'pending' });
  });

  it('that is the same one, written otherwise, changes nothing', async () => {
    const id = await given('active');
    const before = await row(id);
    expect((await patch(id, { url: 'http://127.0.0.1:9/a/../hook' }, {}, strict.api)).status).toBe(200);
    expect(await row(id)).toEqual(before);
  });
});

const verify = (id: string) => strict.api.post(`${path}/${id}/verify`);
const unverified = async (status: string, reason: string | null): Promise<string> => {
  const id = await given(status, reason);
  await posthorn.sql(`update endpoint_checks set passed_at = null, passed_way = null where endpoint_id = $1`, [id]);
  return id;
};

describe('verify', () => {
  it.each([
    ['pending_verification', null, 'pending_verification', null],
    ['disabled', 'verification_expired', 'pending_verification', null],
    ['disabled', 'gone', 'disabled', 'gone'],
    ['paused', null, 'paused', null],
  ])('begins anew for an endpoint that is %s (%s): %s', async (status, reason, after, reasonAfter) => {
    const id = await unverified(status, reason);
    const before = await row(id);
    const answer = await verify(id);
    expect(answer.status, answer.text).toBe(202);
    expect(answer.body).toMatchObject({
      id,
      status: after,
      status_reason: reasonAfter,
      verification_state: { status: 'pending', tries: 0, next_try_at: expect.any(String) },
    });
    expect(await row(id)).toMatchObject({
      due: true,
      // The settings are the same ones.
      version: before['version'],
      health_version: (before['health_version'] as number) + 1,
      told_later: true,
    });
  });

  it('says so where the time was over', async () => {
    const id = await unverified('disabled', 'verification_expired');
    expect((await strict.api.get(`${path}/${id}`)).body.verification_state.status).toBe('expired');
  });

  it('is refused where nothing is to be verified', async () => {
    const id = await given('active');
    expect(await verify(id)).toMatchObject({ status: 409, body: { code: 'already_verified' } });
    expect((await strict.api.get(`${path}/${id}`)).body.verification_state).toMatchObject({
      status: 'verified',
      verified_way: 'ping',
    });
    const { id: free } = await posthorn.api.createEndpoint(url, ['a']);
    expect(await verify(free)).toMatchObject({ status: 409, body: { code: 'already_verified' } });
  });
});
