import type { ScheduleHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ReconcileReport } from '../../activities/contracts/reconcile-activities.js';
import { scheduleIds } from '../../workflows/contracts/names.js';
import { RecordingReceiver, type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

let posthorn: RunningPosthorn;
let receiver: RecordingReceiver;

beforeAll(async () => {
  receiver = await RecordingReceiver.start();
  posthorn = await startPosthorn({ extra: { POSTHORN_RETENTION_PAYLOADS: '1h' } });
});
afterAll(async () => {
  await posthorn.stop();
  await receiver.stop();
});

const client = () => posthorn.core.temporal.client!;

function schedule(name: keyof typeof scheduleIds): Promise<ScheduleHandle> {
  const handle = client().schedule.getHandle(scheduleIds[name]);
  return until(`the schedule of ${name} is there`, async () => (await handle.describe(), handle));
}

/** Runs what the schedule starts, now, and answers its result. */
async function run<T>(name: keyof typeof scheduleIds): Promise<T> {
  const handle = await schedule(name);
  const before = (await handle.describe()).info.numActionsTaken;
  await handle.trigger();
  const workflowId = await until(`${name} has been started`, async () => {
    const { info } = await handle.describe();
    return info.numActionsTaken > before && info.recentActions.at(-1)?.action.workflow.workflowId;
  });
  return (await client().workflow.getHandle(workflowId).result()) as T;
}

describe('the schedules', () => {
  it('are in Temporal once a worker runs, and keep an operator’s pause', async () => {
    await schedule('reconcile');
    const handle = await schedule('purge');
    expect((await handle.describe()).spec.intervals?.[0]?.every).toBe(3_600_000);
    await handle.pause('not now');
    const updatedAt = async () => (await handle.describe()).info.lastUpdatedAt?.getTime();
    const before = await updatedAt();
    const second = await startPosthorn({ databaseUrl: posthorn.databaseUrl, namespace: posthorn.namespace });
    await until('the schedules are written again', async () => (await updatedAt()) !== before);
    expect((await handle.describe()).state.paused).toBe(true);
    await second.stop();
    await handle.unpause();
  });

  it('purge what is older than its setting says, and a redelivery says that it has gone', async () => {
    const { id: endpointId } = await posthorn.api.createEndpoint(receiver.url, ['old.happened']);
    const old = await posthorn.api.publish('old.happened', { secret: 42 });
    const young = await posthorn.api.publish('old.happened', { secret: 43 });
    for (const event of [old, young])
      expect((await posthorn.api.delivery(event.deliveries[0]!.id, '20s')).status).toBe('succeeded');
    await posthorn.core.db.query(`update events set accepted_at = now() - interval '61 minutes' where id = $1`, [
      old.id,
    ]);
    const removed = await run<Record<string, number>>('purge');
    expect(removed).toMatchObject({ payloads: 1, deliveries: 0, events: 0 });
    expect((await posthorn.api.get(`/v1/events/${old.id}`)).body).toMatchObject({
      data: null,
      deliveries: [{ endpoint_id: endpointId }],
    });
    expect((await posthorn.api.get(`/v1/events/${young.id}`)).body.data).toEqual({ secret: 43 });
    const again = await posthorn.api.post(`/v1/webhook-deliveries/${old.deliveries[0]!.id}/redeliver`);
    expect([again.status, again.body.code]).toEqual([409, 'payload_expired']);
  });

  it('reconcile, and /readyz tells the last result', async () => {
    const { reconciliation: before } = (await posthorn.api.get('/readyz')).body;
    expect(before).toBeNull();
    const lost = await posthorn.api.publish('old.happened');
    await posthorn.api.delivery(lost.deliveries[0]!.id, '20s');
    const report = await run<ReconcileReport>('reconcile');
    expect(report).toMatchObject({ gaps: {}, repaired: {}, lost: null, workflowsCut: false });
    expect(report.examined.workflows).not.toBeNull();
    // It is read every two seconds at most.
    const told = await until('/readyz has it', async () => (await posthorn.api.get('/readyz')).body.reconciliation);
    expect(told).toEqual({
      finished_at: report.finishedAt,
      status: 'ok',
      gaps: {},
      repaired: {},
      lost: null,
    });
    await posthorn.core.db.query('delete from attempts where delivery_id = $1', [lost.deliveries[0]!.id]);
    await posthorn.core.db.query('delete from deliveries where id = $1', [lost.deliveries[0]!.id]);
    const next = await run<ReconcileReport>('reconcile');
    expect(next.gaps).toEqual({ workflow_without_delivery: 1 });
    const body = await until('/readyz has the next', async () => {
      const answer = (await posthorn.api.get('/readyz')).body;
      return answer.reconciliation.finished_at === next.finishedAt && answer;
    });
    expect(body).toMatchObject({ status: 'ready', reconciliation: { status: 'gaps', lost: { deliveries: 1 } } });
    expect(JSON.stringify(body)).not.toContain(lost.deliveries[0]!.id);
  });
});
