import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import type { ApiClient } from '../../support/posthorn.js';

let posthorn: RunningApi;

beforeAll(async () => {
  posthorn = await startApi();
});
afterAll(() => posthorn.stop());

const path = '/v1/webhooks/subscriptions';
const day = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * day).toISOString();
const bodies: Readonly<Record<string, unknown>> = { renew: { expires_at: null } };
const actions = ['pause', 'resume', 'enable', 'renew'] as const;
let types = 0;

async function given(settings: Record<string, unknown> = {}): Promise<{ id: string; type: string }> {
  const type = `lifecycle.t${++types}`;
  const { id } = await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', [type], settings);
  return { id, type };
}

const act = (id: string, action: string, body: unknown = bodies[action], api: ApiClient = posthorn.api) =>
  api.post(`${path}/${id}/${action}`, body);
const get = async (id: string) => (await posthorn.api.get(`${path}/${id}`)).body;
const health = async (id: string) => (await posthorn.api.get(`${path}/${id}/health`)).body;
const row = async (id: string) => (await posthorn.sql('select * from endpoints where id = $1', [id]))[0];
const set = (id: string, assignments: string) =>
  posthorn.sql(`update endpoints set ${assignments}, status_changed_at = now() - interval '1 h' where id = $1`, [id]);

describe('an action that the state of an endpoint does not allow', () => {
  it.each([
    ['pause', 'disabled', 'The endpoint is disabled: enable it, with POST …/enable'],
    ['pause', 'expired', 'The endpoint is expired: renew it first, with POST …/renew'],
    ['resume', 'disabled', 'The endpoint is disabled: enable it, with POST …/enable'],
    ['resume', 'expired', 'The endpoint is expired: renew it first, with POST …/renew'],
    ['enable', 'paused', 'The endpoint is paused: resume it, with POST …/resume'],
    ['enable', 'expired', 'The endpoint is expired: renew it first, with POST …/renew'],
  ])('%s, %s: is told what to do, and changes nothing', async (action, status, detail) => {
    const { id } = await given();
    await set(id, `status = '${status}'`);
    const before = await row(id);
    const answer = await act(id, action);
    expect(answer).toMatchObject({ status: 409, body: { code: 'endpoint_state_conflict', detail } });
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(await row(id)).toEqual(before);
  });

  it('is to enable one whose date has passed: renewed first, it can be', async () => {
    const { id } = await given();
    await set(id, `status = 'disabled', status_reason = 'failing', expires_at = now() - interval '1 s'`);
    const refused = await act(id, 'enable');
    expect(refused).toMatchObject({ status: 409, body: { code: 'endpoint_state_conflict' } });
    expect(refused.body.detail).toBe(
      'The endpoint is disabled, and its expires_at has passed: renew it first, with POST …/renew',
    );
    const until = inDays(30);
    expect(await act(id, 'renew', { expires_at: until })).toMatchObject({
      status: 200,
      body: { status: 'disabled', status_reason: 'failing', expires_at: until },
    });
    expect(await act(id, 'enable')).toMatchObject({
      status: 200,
      body: { status: 'active', status_reason: null, expires_at: until },
    });
  });
});

describe('repeating an action', () => {
  it.each([
    ['pause', 'paused'],
    ['resume', 'active'],
    ['enable', 'active'],
    ['renew', 'active'],
  ])('%s, where the endpoint is %s already, answers 200 and changes nothing', async (action, status) => {
    const { id } = await given();
    await set(id, `status = '${status}'`);
    const before = await row(id);
    const answer = await act(id, action);
    expect(answer).toMatchObject({ status: 200, body: { id, status } });
    expect(await row(id)).toEqual(before);
  });

  it('may come many times at once', async () => {
    const { id } = await given();
    const answers = await Promise.all(Array.from({ length: 8 }, () => act(id, 'pause')));
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { status: 'paused' } });
    // One change: the creation was the first.
    expect(await row(id)).toMatchObject({ health_version: '2' });
  });
});

describe('pause', () => {
  it('holds what waits, and what comes, without an attempt', async () => {
    const { id, type } = await given();
    const before = await posthorn.api.publish(type);
    expect(await act(id, 'pause')).toMatchObject({ status: 200, body: { status: 'paused', status_reason: null } });
    const after = await posthorn.api.publish(type);
    for (const { deliveries } of [before, after]) {
      expect(await posthorn.api.delivery(deliveries[0]!.id)).toMatchObject({
        status: 'held',
        reason: 'endpoint_paused',
        attempt_count: 0,
        next_attempt_at: null,
      });
    }
  });

  it('finishes what an earlier one left undone', async () => {
    const { id, type } = await given();
    const { deliveries } = await posthorn.api.publish(type);
    await set(id, `status = 'paused'`);
    expect((await act(id, 'pause')).status).toBe(200);
    expect(await posthorn.api.delivery(deliveries[0]!.id)).toMatchObject({ status: 'held' });
  });

  it('keeps since when the endpoint fails, and resume does, too', async () => {
    const { id } = await given();
    const failingSince = new Date(Date.now() - day);
    await posthorn.sql('update endpoints set failing_since = $2 where id = $1', [id, failingSince]);
    await act(id, 'pause');
    expect(await health(id)).toMatchObject({ status: 'paused', failing_since: failingSince.toISOString() });
    await act(id, 'resume');
    expect(await health(id)).toMatchObject({ failing_since: failingSince.toISOString(), pace: 'probing' });
    // The pause doesn't count: the week begins anew.
    const { coming } = await health(id);
    const disable = coming.find(({ what }: { what: string }) => what === 'disable');
    expect(Date.parse(disable.at) - Date.now()).toBeGreaterThan(6.9 * day);
  });
});

describe('an endpoint that was never verified', () => {
  it.each([
    ['resume', `status = 'paused'`],
    ['enable', `status = 'disabled', status_reason = 'failing'`],
    ['renew', `status = 'expired', expires_at = now() - interval '1 s'`],
  ])('has to be, with all the time for it, after %s', async (action, state) => {
    const { id } = await given();
    await set(id, state);
    await posthorn.sql(
      `update endpoint_checks set passed_at = null, tries = 7, next_at = null, started_at = now() - interval '80 h'
        where endpoint_id = $1 and kind = 'verification'`,
      [id],
    );
    expect(await act(id, action)).toMatchObject({
      status: 200,
      body: { status: 'pending_verification', verification_state: { status: 'pending', tries: 0 } },
    });
    const { coming } = await health(id);
    const end = coming.find(({ what }: { what: string }) => what === 'expire_verification');
    expect(Math.abs(Date.parse(end.at) - Date.now() - 3 * day)).toBeLessThan(60_000);
  });
});

describe('renew', () => {
  it('sets the date, which is a change of the settings', async () => {
    const { id } = await given();
    const before = await posthorn.api.get(`${path}/${id}`);
    const until = inDays(30);
    const answer = await act(id, 'renew', { expires_at: until });
    expect(answer).toMatchObject({ status: 200, body: { status: 'active', expires_at: until } });
    expect(answer.headers.get('etag')).not.toBe(before.headers.get('etag'));
    expect((await act(id, 'renew', { expires_at: null })).body).toMatchObject({ expires_at: null });
  });

  it.each(['paused', 'disabled', 'pending_verification'])('leaves one that is %s as it is', async (status) => {
    const { id } = await given();
    await set(id, `status = '${status}'`);
    expect(await act(id, 'renew', { expires_at: inDays(1) })).toMatchObject({ status: 200, body: { status } });
  });

  it('brings back one that has expired, with the date or without', async () => {
    for (const expires_at of [inDays(1), null]) {
      const { id, type } = await given();
      await set(id, `status = 'expired', expires_at = now() - interval '1 s'`);
      expect((await posthorn.api.publish(type)).deliveries).toEqual([]);
      expect(await act(id, 'renew', { expires_at })).toMatchObject({ status: 200, body: { status: 'active' } });
      expect((await posthorn.api.publish(type)).deliveries).toHaveLength(1);
    }
  });

  it.each([
    [undefined, 'invalid_field', undefined],
    [{}, 'missing_field', 'expires_at'],
    [[], 'invalid_field', undefined],
    [{ expires_at: '' }, 'invalid_field', 'expires_at'],
    [{ expires_at: 'tomorrow' }, 'invalid_field', 'expires_at'],
    [{ expires_at: 1_893_456_000_000 }, 'invalid_field', 'expires_at'],
    [{ expires_at: '2020-01-31T12:00:00Z' }, 'invalid_field', 'expires_at'],
    [{ expires_at: '2027-02-30T12:00:00Z' }, 'invalid_field', 'expires_at'],
    [{ expires_at: '2999-01-31T12:00:00Z' }, 'invalid_field', 'expires_at'],
    [{ expires_at: null, reason: 'x' }, 'unknown_field', 'reason'],
  ])('refuses %j', async (body, code, field) => {
    const { id } = await given();
    const before = await row(id);
    const answer = await posthorn.api.post(`${path}/${id}/renew`, body);
    expect(answer, answer.text).toMatchObject({ status: 422, body: { code } });
    expect(answer.body.field).toBe(field);
    expect(await row(id)).toEqual(before);
  });

  it('refuses a time that has passed by the database’s clock', async () => {
    const { id } = await given();
    const result = await posthorn.core.health.renew('default', id, new Date(Date.now() - 1));
    expect(result).toEqual({ kind: 'past' });
    expect(await get(id)).toMatchObject({ expires_at: null });
  });
});

describe('pause, resume and enable', () => {
  it.each(['pause', 'resume', 'enable'])('take no body but an empty object: %s', async (action) => {
    const { id } = await given();
    expect(await act(id, action, { reason: 'x' })).toMatchObject({
      status: 422,
      body: { code: 'unknown_field', field: 'reason' },
    });
    expect((await act(id, action, [])).status).toBe(422);
    expect((await act(id, action, {})).status).toBe(200);
  });

  it.each(['pause', 'resume', 'enable', 'renew'])('answer the ETag that the endpoint has: %s', async (action) => {
    const { id } = await given();
    const answer = await act(id, action);
    const { headers, body } = await posthorn.api.get(`${path}/${id}`);
    expect(answer.headers.get('etag')).toBe(headers.get('etag'));
    expect(answer.body).toEqual(body);
  });
});

describe('another tenant', () => {
  it('finds neither the actions nor the health of an endpoint', async () => {
    const { id } = await given();
    const other = await posthorn.tenant('other');
    const before = await row(id);
    for (const action of actions) {
      expect(await act(id, action, bodies[action], other)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    }
    expect(await other.get(`${path}/${id}/health`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect((await other.get(`${path}/${id}/health?tenant_id=default`)).status).toBe(403);
    expect(await row(id)).toEqual(before);
  });

  it('is served by a service key that names it', async () => {
    const api = await posthorn.tenant('named');
    const { id } = await api.createEndpoint('http://127.0.0.1:9/hook', ['a']);
    for (const action of actions) {
      expect((await act(id, action)).status).toBe(404);
      expect((await posthorn.api.post(`${path}/${id}/${action}?tenant_id=named`, bodies[action])).status).toBe(200);
    }
    expect((await posthorn.api.get(`${path}/${id}/health?tenant_id=named`)).status).toBe(200);
  });

  it('adds nothing to the health of an endpoint', async () => {
    const api = await posthorn.tenant('noisy');
    const { id, type } = await given();
    await api.createEndpoint('http://127.0.0.1:9/hook', [type]);
    await set(id, `status = 'disabled', status_reason = 'gone'`);
    await api.publish(type);
    await posthorn.api.publish(type);
    expect(await health(id)).toMatchObject({ missed: { events: 1 }, backlog: { held: 0, waiting: 0 } });
  });
});

describe('the health of an endpoint', () => {
  it('is complete where nothing has happened yet', async () => {
    const { id } = await given({ owner_email: 'hooks@example.com', expires_at: inDays(30) });
    const answer = await posthorn.api.get(`${path}/${id}/health`);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toEqual({
      status: 'active',
      status_reason: null,
      status_changed_at: (await get(id)).status_changed_at,
      failing_since: null,
      refused_since: null,
      last_success_at: null,
      pace: 'open',
      evidence: { first_failure_at: null, attempts: 0, failed_attempts: 0, last_failures: [] },
      backlog: { held: 0, waiting: 0, oldest_at: null },
      missed: null,
      notices: [],
      coming: [
        { what: 'tell_expiring', at: expect.any(String) },
        { what: 'expire', at: expect.any(String) },
      ],
      mail: { owner_email: 'hooks@example.com', pending: 0, failed: 0, last_error: null, next_at: null },
      token: null,
    });
    const [told, expires] = answer.body.coming.map(({ at }: { at: string }) => Date.parse(at) - Date.now());
    expect(Math.abs(told - 23 * day)).toBeLessThan(60_000);
    expect(Math.abs(expires - 30 * day)).toBeLessThan(60_000);
  });

  it('shows the failure with its evidence, what waits, and what comes', async () => {
    const { id, type } = await given({ owner_email: 'hooks@example.com' });
    const [failed, waits] = [await posthorn.api.publish(type), await posthorn.api.publish(type)];
    const deliveryId = failed.deliveries[0]!.id;
    const startedAt = new Date();
    await posthorn.core.attempts.record({
      id: `att_${deliveryId.slice(4)}`,
      deliveryId,
      runId: 'run',
      sequence: 1,
      round: 1,
      startedAt,
      durationMs: 5,
      statusCode: 503,
      errorCode: 'http_status',
      errorMessage: 'answered 503',
      responseHeaders: [],
      responseBody: Buffer.alloc(0),
      responseTruncated: false,
      remoteAddress: null,
      resent: false,
      outcome: 'failed',
      gone: false,
      refused: false,
      waitMs: 60_000,
      restMs: null,
      letterExpiryMs: day,
      probeRestMs: 1_000,
    });
    await posthorn.core.notices.create(posthorn.core.db.manager, {
      endpointId: id,
      type: 'endpoint.failing',
      episode: `${startedAt.toISOString()}/${day}`,
      data: {},
    });
    const { created_at: oldest } = await posthorn.api.delivery(deliveryId);
    expect(await health(id)).toMatchObject({
      failing_since: startedAt.toISOString(),
      evidence: {
        first_failure_at: startedAt.toISOString(),
        attempts: 1,
        failed_attempts: 1,
        last_failures: [
          {
            delivery_id: deliveryId,
            at: startedAt.toISOString(),
            status_code: 503,
            error_code: 'http_status',
            error_message: 'answered 503',
          },
        ],
      },
      backlog: { held: 0, waiting: 2, oldest_at: oldest },
      notices: [{ id: expect.stringMatching(/^ntc_/), type: 'endpoint.failing', created_at: expect.any(String) }],
    });
    const { coming } = await health(id);
    expect(coming.map(({ what }: { what: string }) => what)).toEqual(expect.arrayContaining(['warn', 'disable']));
    const disable = coming.find(({ what }: { what: string }) => what === 'disable');
    expect(Math.abs(Date.parse(disable.at) - startedAt.getTime() - 7 * day)).toBeLessThan(60_000);

    await act(id, 'pause');
    expect(await health(id)).toMatchObject({ backlog: { held: 2, waiting: 0, oldest_at: oldest } });
    expect(waits.deliveries).toHaveLength(1);
  });

  it('counts what it missed since it was disabled', async () => {
    const { id, type } = await given();
    await posthorn.api.publish(type);
    await posthorn.sql(
      `update endpoints set status = 'disabled', status_reason = 'gone', status_changed_at = now() where id = $1`,
      [id],
    );
    for (let n = 0; n < 3; n++) expect((await posthorn.api.publish(type)).deliveries).toEqual([]);
    await posthorn.api.publish(`${type}.other`);
    const { status_changed_at: since } = await get(id);
    expect(await health(id)).toMatchObject({ status: 'disabled', status_reason: 'gone', missed: { since, events: 3 } });
    await act(id, 'enable');
    expect(await health(id)).toMatchObject({ status: 'active', status_reason: null, missed: null, pace: 'probing' });
  });

  it('is gone with the endpoint', async () => {
    const { id } = await given();
    await posthorn.api.delete(`${path}/${id}`);
    expect(await posthorn.api.get(`${path}/${id}/health`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect((await posthorn.api.get(`${path}/we_x/health`)).status).toBe(404);
  });
});
