import { expect, it } from 'vitest';
import { rawRequest, startApi } from '../../support/api.js';

const given = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const line = (text: string, name: string): string | undefined =>
  text
    .split('\n')
    .find((one) => one.startsWith(name))
    ?.slice(name.length + 1);

it('/metrics tells Prometheus of what was accepted, waits and was closed, without an API key', async () => {
  const posthorn = await startApi({ extra: { POSTHORN_VERIFICATION_REQUIRED: 'off' } });
  const { api, port } = posthorn;
  try {
    const { id } = await api.createEndpoint('http://127.0.0.1:9/hook', ['*']);
    await api.post('/v1/events', { type: 'one.kept', id: 'kept', data: {} });
    await api.post('/v1/events', { type: 'one.kept', id: 'kept', data: {} });
    const { body } = await api.post('/v1/events', { type: 'one.cancelled', data: {} });
    await api.post(`/v1/webhook-deliveries/${body.deliveries[0].id}/cancel`);
    await posthorn.sql(`update deliveries set next_attempt_at = now() - interval '1 hour', sweep_after = now() - interval '50 min'
                         where event_id = 'kept'`);
    const { status, headers, text } = await rawRequest(port, { method: 'GET', path: '/metrics' });
    expect([status, headers['content-type']]).toEqual([200, expect.stringMatching(/^text\/plain; version=0\.0\.4/)]);
    expect(line(text, 'posthorn_events_accepted_total')).toBe('2');
    expect(line(text, 'posthorn_deliveries_created_total{status="pending"}')).toBe('2');
    expect(line(text, 'posthorn_deliveries_closed_total{status="cancelled",reason="cancelled_by_request"}')).toBe('1');
    expect(line(text, 'posthorn_backlog_deliveries{status="pending"}')).toBe('1');
    expect(Number(line(text, 'posthorn_queue_oldest_due_seconds{status="pending"}'))).toBeGreaterThanOrEqual(3_600);
    expect(Number(line(text, 'posthorn_sweeper_lag_seconds'))).toBeGreaterThanOrEqual(3_000);
    expect(line(text, 'posthorn_endpoints{status="active"}')).toBe('1');
    expect(line(text, 'posthorn_metrics_database_up')).toBe('1');
    expect(text).not.toContain(id);
  } finally {
    await posthorn.stop();
  }
});

it('deliveries that are closed with their endpoint are counted by their reason', async () => {
  const posthorn = await startApi({ extra: { POSTHORN_VERIFICATION_REQUIRED: 'off' } });
  const { api, core } = posthorn;
  try {
    const { id } = await api.createEndpoint('http://127.0.0.1:9/hook', ['*']);
    await api.post('/v1/events', { type: 'one.lost', data: {} });
    await api.post('/v1/events', { type: 'one.lost', data: {} });
    await posthorn.sql(`update endpoints set status = 'expired' where id = $1`, [id]);
    await core.waiting.closeAllOf(id);
    await expect
      .poll(async () =>
        line(
          await core.metricsPage.text(),
          'posthorn_deliveries_closed_total{status="failed",reason="endpoint_expired"}',
        ),
      )
      .toBe('2');
    expect(line(await core.metrics.registry.metrics(), 'posthorn_dead_letters_open{reason="endpoint_expired"}')).toBe(
      '2',
    );
  } finally {
    await posthorn.stop();
  }
});

it('deliveries are counted by their reason, whoever closes them', async () => {
  const posthorn = await startApi({ extra: { POSTHORN_VERIFICATION_REQUIRED: 'off' } });
  const { api, core } = posthorn;
  const closed = async (status: string, reason: string): Promise<string | undefined> =>
    line(await core.metricsPage.text(), `posthorn_deliveries_closed_total{status="${status}",reason="${reason}"}`);
  try {
    const publish = async (): Promise<string> => (await api.publish('one.closed')).deliveries[0]!.id;
    const { id: endpointId } = await api.createEndpoint('http://127.0.0.1:9/hook', ['*']);

    const [old, older] = [await publish(), await publish()];
    await posthorn.sql(
      `update deliveries set status = 'held', reason = 'rate_limited', held_since = now() - interval '30 days' where id = any($1)`,
      [[old, older]],
    );
    await posthorn.sql(`update endpoints set pace = 'probing', probe_after = now() + interval '1 hour'`);
    await core.releaser.releaseOnce();
    await posthorn.sql(`update endpoints set pace = 'open'`);
    expect(await closed('failed', 'queue_age_exceeded')).toBe('2');

    const inWebUi = await publish();
    const cancel = { deliveryId: inWebUi, runId: 'run', round: 1, requestedRound: null };
    await core.deliveries.cancelFromWorkflow(cancel);
    await core.deliveries.cancelFromWorkflow(cancel);
    expect(await closed('cancelled', 'cancelled_by_request')).toBe('1');

    const terminated = await publish();
    await core.sweeps.closeTerminated(terminated, 1);
    await core.sweeps.closeTerminated(terminated, 1);
    expect(await closed('cancelled', 'terminated_by_operator')).toBe('1');

    const purged = await publish();
    await posthorn.sql(`update events set data = null, payload_purged_at = now()`);
    await core.waiting.closeWithoutPayload(purged);
    expect(await closed('failed', 'payload_expired')).toBe('1');

    await publish();
    await posthorn.sql(`update endpoints set status = 'disabled', status_reason = 'gone' where id = $1`, [endpointId]);
    await core.waiting.closeAllOf(endpointId);
    expect(await closed('failed', 'endpoint_gone')).toBe('1');
  } finally {
    await posthorn.stop();
  }
});

it('/metrics is no path where it is switched off', async () => {
  const posthorn = await startApi({ extra: { POSTHORN_METRICS: 'off' } });
  try {
    expect((await rawRequest(posthorn.port, { method: 'GET', path: '/metrics' })).status).toBe(404);
  } finally {
    await posthorn.stop();
  }
});

it('an event keeps the traceparent of its request, and a bad one is no fault', async () => {
  const posthorn = await startApi();
  const { api } = posthorn;
  try {
    const publish = (id: string, traceparent: string) =>
      api.post('/v1/events', { type: 'one.traced', id, data: {} }, { traceparent });
    expect((await publish('good', given)).status).toBe(202);
    expect((await publish('bad', 'ff-nonsense')).status).toBe(202);
    await api.post(
      '/v1/events/batch',
      { events: [{ type: 'one.traced', id: 'batched', data: {} }] },
      { traceparent: given },
    );
    const rows = await posthorn.sql<{ id: string; traceparent: string | null }>(
      'select id, traceparent from events order by id',
    );
    expect(rows).toEqual([
      { id: 'bad', traceparent: null },
      { id: 'batched', traceparent: given },
      { id: 'good', traceparent: given },
    ]);
    const answer = await api.get('/v1/events/good');
    expect(JSON.stringify(answer.body)).not.toContain('traceparent');
  } finally {
    await posthorn.stop();
  }
});
