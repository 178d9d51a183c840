import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deliveryStatuses, endpointStatuses, isTerminal } from '../../../src/domain/closed-lists.js';
import { type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;
let keyId: string;

beforeAll(async () => {
  posthorn = await startApi();
  keyId = (await posthorn.sql<{ id: string }>('select id from api_keys'))[0]!.id;
});
afterAll(() => posthorn.stop());

const path = '/v1/webhook-deliveries';

/** A delivery in this state, made three attempts ago in round 2, to an endpoint in that state. */
async function given(status: string, endpoint: string, due: 'later' | 'now' = 'later') {
  const { id: endpointId } = await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', ['acted.on']);
  const { deliveries } = await posthorn.api.publish('acted.on');
  const { id } = deliveries.find((delivery) => delivery.endpoint_id === endpointId)!;
  const open = status === 'pending' || status === 'retrying';
  await posthorn.sql(
    `update deliveries set status = $2, round = 2, attempt_count = 3, round_attempts = $3, updated_at = now() - interval '1 hour',
            next_attempt_at = case when $4 then now() + $5 * interval '1 hour' end, sweep_after = case when $4 then now() + interval '1 hour' end
      where id = $1`,
    [id, status, status === 'pending' ? 0 : 2, open, due === 'later' ? 1 : -1],
  );
  if (endpoint === 'deleted') await posthorn.sql('update endpoints set deleted_at = now() where id = $1', [endpointId]);
  else await posthorn.sql('update endpoints set status = $2 where id = $1', [endpointId, endpoint]);
  return id;
}

async function row(id: string) {
  const [found] = await posthorn.sql(
    `select status, round, attempt_count, round_attempts, wake_requested, next_attempt_at <= now() as due, sweep_after > now() as swept,
            reason, request_reason, requested_by from deliveries where id = $1`,
    [id],
  );
  return found;
}

const endpointStates = [...endpointStatuses, 'deleted'] as const;
const all = deliveryStatuses.flatMap((status) => endpointStates.map((endpoint) => [status, endpoint] as const));

describe('redeliver', () => {
  it.each(all)('a delivery that is %s, to an endpoint that is %s', async (status, endpoint) => {
    const id = await given(status, endpoint);
    const before = await row(id);
    const answer = await posthorn.api.post(`${path}/${id}/redeliver`, { reason: 'fixed' });
    if (endpoint !== 'active') {
      expect(answer).toMatchObject({
        status: 409,
        body: { code: 'endpoint_unavailable', detail: expect.stringContaining(endpoint) },
      });
      expect(await row(id)).toEqual(before);
      return;
    }
    const closed = isTerminal(status);
    const expected = {
      status: closed || status === 'pending' ? 'pending' : 'retrying',
      round: closed ? 3 : 2,
      attempt_count: 3,
      reason: 'redelivery_requested',
      request_reason: 'fixed',
      requested_by: keyId,
    };
    expect(answer).toMatchObject({ status: 202, body: { id, ...expected, already_in_progress: false } });
    // Durable before anybody is told: due, and the sweeper’s if nobody takes it up.
    expect(await row(id)).toEqual({
      ...expected,
      round_attempts: closed || status === 'pending' ? 0 : 2,
      wake_requested: true,
      due: true,
      swept: true,
    });
  });

  it.each(['pending', 'retrying'])(
    'changes nothing while an attempt of a %s delivery is due or in flight',
    async (status) => {
      const id = await given(status, 'active', 'now');
      const before = await row(id);
      const answer = await posthorn.api.post(`${path}/${id}/redeliver`, { reason: 'impatient' });
      expect(answer).toMatchObject({ status: 202, body: { status, round: 2, already_in_progress: true } });
      expect(await row(id)).toEqual(before);
    },
  );

  it('opens one round however many ask at once', async () => {
    const id = await given('failed', 'active');
    const answers = await Promise.all(Array.from({ length: 10 }, () => posthorn.api.post(`${path}/${id}/redeliver`)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(202));
    expect(answers.filter(({ body }) => body.already_in_progress === false)).toHaveLength(1);
    expect(await row(id)).toMatchObject({ status: 'pending', round: 3 });
  });
});

describe('cancel', () => {
  it.each(all)('a delivery that is %s, to an endpoint that is %s', async (status, endpoint) => {
    const id = await given(status, endpoint);
    const before = await row(id);
    const answer = await posthorn.api.post(`${path}/${id}/cancel`, { reason: 'not needed' });
    if (isTerminal(status)) {
      expect(answer).toMatchObject({
        status: 409,
        body: { code: 'delivery_closed', detail: expect.stringContaining(status) },
      });
      expect(await row(id)).toEqual(before);
      return;
    }
    const expected = {
      status: 'cancelled',
      reason: 'cancelled_by_request',
      round: 2,
      attempt_count: 3,
      request_reason: 'not needed',
      requested_by: keyId,
    };
    expect(answer).toMatchObject({ status: 202, body: { id, ...expected, next_attempt_at: null } });
    expect(await row(id)).toMatchObject({ ...expected, wake_requested: false, due: null, swept: null });
  });
});

describe('an action', () => {
  it.each([
    ['no body', undefined, null],
    ['an empty object', {}, null],
    ['null', 'null', null],
    ['a null reason', { reason: null }, null],
    ['a reason with odd characters', { reason: 'é\n😀 \u2028' }, 'é\n😀 \u2028'],
  ])('takes %s', async (_, body, reason) => {
    for (const action of ['redeliver', 'cancel']) {
      const id = await given('held', 'active');
      const answer = await posthorn.api.post(`${path}/${id}/${action}`, body);
      expect(answer).toMatchObject({ status: 202, body: { request_reason: reason } });
    }
  });

  it('takes an empty body with a content type', async () => {
    const id = await given('held', 'active');
    expect((await posthorn.api.post(`${path}/${id}/cancel`, '')).status).toBe(202);
  });

  it('works again and again: cancel, redeliver, cancel', async () => {
    const id = await given('retrying', 'active');
    for (const [action, status, round] of [
      ['cancel', 'cancelled', 2],
      ['redeliver', 'pending', 3],
      ['cancel', 'cancelled', 3],
    ] as const)
      expect((await posthorn.api.post(`${path}/${id}/${action}`)).body).toMatchObject({ status, round });
  });
});
