import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';
import { makeLetters } from '../../support/letters.js';
import { until } from '../../support/posthorn.js';

let posthorn: RunningApi;
beforeAll(async () => void (posthorn = await startApi()));
afterAll(() => posthorn.stop());

const deliveries = '/v1/webhook-deliveries';
const subscriptions = '/v1/webhooks/subscriptions';

interface Entry {
  readonly at: string;
  readonly kind: string;
  readonly reason?: string;
  readonly until?: string;
}

const timelineOf = async (id: string): Promise<Entry[]> =>
  (await posthorn.api.get(`${deliveries}/${id}/timeline`)).body.data as Entry[];

async function letter(settings: Record<string, unknown> = {}): Promise<{ id: string; endpointId: string }> {
  const type = `t${Math.random().toString(36).slice(2)}.happened`;
  const { id: endpointId } = await posthorn.api.createEndpoint('http://127.0.0.1:9/hook', [type], settings);
  const [id] = await makeLetters(posthorn, endpointId, type, 1);
  return { id: id!, endpointId };
}

/** Closes it once more, as an attempt would. */
const fail = (id: string) =>
  posthorn.sql(
    `update deliveries set status = 'failed', reason = 'attempts_exhausted', next_attempt_at = null, sweep_after = null where id = $1`,
    [id],
  );

it('tells of each hold that is over why it was and how long', async () => {
  const { api, core } = posthorn;
  const { id: endpointId } = await api.createEndpoint('http://127.0.0.1:9/hook', ['held.*']);
  await api.post(`${subscriptions}/${endpointId}/pause`);
  const { deliveries: made } = await api.publish('held.first');
  const id = made[0]!.id;
  await api.post(`${subscriptions}/${endpointId}/resume`);
  await core.releaser.releaseOnce();
  expect(await api.delivery(id)).toMatchObject({ status: 'pending', reason: 'published' });
  await api.post(`${subscriptions}/${endpointId}/pause`);
  expect(await api.delivery(id)).toMatchObject({ status: 'held' });
  await api.delete(`${subscriptions}/${endpointId}`);
  expect(await api.delivery(id)).toMatchObject({ status: 'cancelled' });
  const told = await timelineOf(id);
  expect(told).toMatchObject([
    { kind: 'published' },
    { kind: 'held', reason: 'endpoint_paused', at: told[0]!.at },
    { kind: 'held', reason: 'endpoint_paused', until: told[3]!.at },
    { kind: 'cancelled', reason: 'endpoint_deleted' },
  ]);
  expect(told[1]!.until! > told[1]!.at && told[2]!.at >= told[1]!.until!).toBe(true);
});

it('has the time of each redelivery, and who asked for which', async () => {
  const { id } = await letter();
  const notBefore = new Date().toISOString();
  await posthorn.api.post(`${deliveries}/${id}/redeliver`, { reason: 'first' });
  await fail(id);
  await posthorn.api.post(`${deliveries}/${id}/redeliver`, { reason: 'second' });
  const told = (await timelineOf(id)).filter(({ kind }) => kind === 'redelivery');
  expect(told).toEqual([
    expect.objectContaining({ round: 2, reason: 'redelivery_requested', note: 'first', by: expect.any(String) }),
    expect.objectContaining({ round: 3, reason: 'redelivery_requested', note: 'second', by: expect.any(String) }),
  ]);
  for (const entry of told) expect(entry).not.toHaveProperty('at_latest');
  const [first, second] = told.map(({ at }) => at);
  expect(first! >= notBefore && second! >= first! && second! <= new Date().toISOString()).toBe(true);
});

it('says where the time of a redelivery is one at the latest', async () => {
  const { id } = await letter();
  await posthorn.api.post(`${deliveries}/${id}/redeliver`);
  await posthorn.sql('update deliveries set past = null where id = $1', [id]);
  expect(await timelineOf(id)).toContainEqual(expect.objectContaining({ kind: 'redelivery', at_latest: true }));
});

it('keeps the newest 50 holds and redeliveries, and says that there were more', async () => {
  const { id } = await letter();
  for (let n = 0; n < 60; n += 1) {
    await posthorn.api.post(`${deliveries}/${id}/redeliver`, { reason: `${n}` });
    await fail(id);
  }
  const { body } = await posthorn.api.get(`${deliveries}/${id}/timeline`);
  expect(body.truncated).toBe(true);
  const [row] = await posthorn.sql<{ n: number }>(
    'select jsonb_array_length(past) as n from deliveries where id = $1',
    [id],
  );
  expect(row!.n).toBe(50);
});

it('says replayed of what a replay sent again, also where it waited for its turn first', async () => {
  const { api, core } = posthorn;
  const { id, endpointId } = await letter();
  await core.db.query(`update endpoints set pace = 'probing', probe_after = now() where id = $1`, [endpointId]);
  const { body: replay } = await api.post('/v1/replays', { delivery_ids: [id], reason: 'again' });
  await until('its rate allows it', async () => (await core.replays.startSome(replay.id))?.started === 1);
  expect(await api.delivery(id)).toMatchObject({ status: 'held', reason: 'rate_limited', round: 2 });
  await core.releaser.releaseOnce();
  expect(await api.delivery(id)).toMatchObject({ status: 'pending', reason: 'replayed' });
  expect((await timelineOf(id)).slice(-3)).toMatchObject([
    { kind: 'redelivery', reason: 'replayed', note: 'again' },
    { kind: 'held', reason: 'rate_limited' },
    { kind: 'wait', reason: 'replayed' },
  ]);
});

it('keeps nothing of a delivery that went well', async () => {
  const { api } = posthorn;
  await api.createEndpoint('http://127.0.0.1:9/hook', ['well.*']);
  const { deliveries: made } = await api.publish('well.done');
  await posthorn.sql(`update deliveries set status = 'succeeded', reason = 'delivered' where id = $1`, [made[0]!.id]);
  expect(await posthorn.sql('select past, round_reason from deliveries where id = $1', [made[0]!.id])).toEqual([
    { past: null, round_reason: null },
  ]);
});
