import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningApi, startApi } from '../../support/api.js';

let posthorn: RunningApi;
beforeAll(async () => {
  posthorn = await startApi({ extra: { POSTHORN_VERIFICATION_REQUIRED: 'on', POSTHORN_VERIFICATION_EVENTS: 'drop' } });
});
afterAll(() => posthorn.stop());

it('events for an unverified endpoint are dropped where the configuration says so, and show it', async () => {
  const { api } = posthorn;
  const { id: endpointId } = await api.createEndpoint('http://127.0.0.1:9/hook', ['dropped.*']);
  const dryRun = await api.post('/v1/events?dry_run=true', { type: 'dropped.one', data: {} });
  expect(dryRun.body.endpoints).toMatchObject([{ endpoint_id: endpointId, status: 'cancelled' }]);
  const event = { id: 'dropped-1', type: 'dropped.one', data: {} };
  const first = await api.post('/v1/events', event);
  expect(first.body.deliveries).toMatchObject([{ endpoint_id: endpointId, status: 'cancelled' }]);
  const id = first.body.deliveries[0].id as string;
  expect(await api.delivery(id)).toMatchObject({
    status: 'cancelled',
    reason: 'verification_dropped',
    attempt_count: 0,
  });
  // A repeated event gets the first answer, whatever became of the endpoint since.
  await posthorn.sql(`update endpoints set status = 'active' where id = $1`, [endpointId]);
  expect((await api.post('/v1/events', event)).text).toBe(first.text);
});
