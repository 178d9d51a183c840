import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { WorkflowHandle } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { newId } from '../../src/security/new-id.js';
import { type RunningPosthorn, startPosthorn, until } from '../support/posthorn.js';

/** More than a run may get from the server in all (10,000). */
const signals = 12_000;
/** The server fails a workflow task during which more than 100 signals come in. */
const burst = 80;
const atOnce = 20;
/** Where a run continues as new, and what may come in until it has. */
const mostEvents = 2_000 + 5 * burst;

let posthorn: RunningPosthorn;
beforeAll(async () => {
  posthorn = await startPosthorn({ extra: { POSTHORN_DELIVERY_ALERT_WINDOW: '45s' }, sweeper: false });
});
afterAll(() => posthorn.stop());

/**
 * In bursts. While signals come without a pause of some milliseconds, the server takes no continue-as-new from any workflow:
 * a new signal makes it look again first. So a sender that never pauses would reach the limit, whatever the workflow does.
 */
async function signalManyTimes(
  workflowId: string,
  signal: () => Promise<void>,
  between: () => Promise<void>,
): Promise<void> {
  for (let sent = 0; sent < signals; sent += burst) {
    let left = burst;
    const work = async (): Promise<void> => {
      while (left-- > 0) await signal();
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    if (sent % (10 * burst) === 0) await between();
    await atRest(workflowId);
  }
}

/** All signals are dealt with: no task of the workflow waits or is at work. */
async function atRest(workflowId: string): Promise<void> {
  await until(
    'it has dealt with all signals',
    async () => !(await client().workflow.getHandle(workflowId).describe()).raw.pendingWorkflowTask,
    60_000,
  );
}

const client = () => posthorn.core.temporal.client!;

interface Run {
  readonly status: string;
  readonly events: number;
  readonly signals: number;
  readonly history: unknown;
  readonly nextRunId: string | null | undefined;
}

/** All runs of a workflow, oldest first: from the first one along the chain. */
async function runsOf(workflowId: string, firstRunId: string): Promise<Run[]> {
  const runs: Run[] = [];
  for (let runId: string | null | undefined = firstRunId; runId; runId = runs.at(-1)?.nextRunId) {
    const handle: WorkflowHandle = client().workflow.getHandle(workflowId, runId);
    const { status } = await handle.describe();
    const history = await handle.fetchHistory();
    const events = history.events ?? [];
    runs.push({
      status: status.name,
      events: events.length,
      signals: events.filter((event) => event.workflowExecutionSignaledEventAttributes).length,
      history: JSON.parse(historyToJSON(history)) as unknown,
      nextRunId: events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId,
    });
  }
  return runs;
}

/** Bounded, complete, and replayed by the workflows that made them. */
async function expectSound(workflowId: string, runs: Run[]): Promise<void> {
  expect(runs.length).toBeGreaterThan(3);
  for (const run of runs) expect(run.events).toBeLessThan(mostEvents);
  expect(runs.slice(0, -1).every(({ status }) => status === 'CONTINUED_AS_NEW')).toBe(true);
  expect(runs.at(-1)!.status).toBe('RUNNING');
  expect(runs.reduce((sum, run) => sum + run.signals, 0)).toBeGreaterThanOrEqual(signals);
  const workflowBundle = { codePath: inject('workflowBundle') };
  for (const { history } of runs) await Worker.runReplayHistory({ workflowBundle }, history, workflowId);
}

describe(`${signals} signals to one endpoint`, () => {
  it('are dealt with by its endpointHealth, whose histories stay short', async () => {
    const { core, api } = posthorn;
    const { id } = await api.createEndpoint('http://127.0.0.1:9/in', ['nothing.*']);
    const workflowId = `endpoint-health/${id}`;
    const firstRunId = await until('its workflow runs', async () => {
      const { runId } = await client().workflow.getHandle(workflowId).describe();
      return runId;
    });
    await signalManyTimes(
      workflowId,
      () => core.gateway.endpointChanged(id),
      async () =>
        void (await core.db.query('update endpoints set health_version = health_version + 1 where id = $1', [id])),
    );
    // The last change is what counts: an endpoint that has failed for a day.
    await core.db.query(
      `update endpoints set health_version = health_version + 1, failing_since = now() - interval '25 hours' where id = $1`,
      [id],
    );
    await core.gateway.endpointChanged(id);
    await until(
      'the owner is told',
      async () => (await api.get(`/v1/notices?endpoint_id=${id}`)).body.data.length === 1,
    );
    await until('all is dealt with', async () => {
      const [row] = await core.db.query<{ seen: boolean }[]>(
        'select health_seen = health_version as seen from endpoints where id = $1',
        [id],
      );
      return row?.seen;
    });
    await expectSound(workflowId, await runsOf(workflowId, firstRunId));
  });

  it('are dealt with by its deadLetterQueue, within a window too, and no letter is lost or told of twice', async () => {
    const { core, api } = posthorn;
    const { id } = await api.createEndpoint('http://127.0.0.1:9/in', ['letters.*']);
    const workflowId = `dead-letter-queue/${id}`;
    let letters = 0;
    const addLetter = async (): Promise<void> => {
      letters += 1;
      const event = newId('evt_');
      await core.db.query(
        `with v as (insert into events (tenant_id, id, type, data, created_at, body_hash) values ('default', $2, 'letters.one', '{}', now(), '')),
              d as (insert into deliveries (id, tenant_id, event_id, endpoint_id, type, status, reason)
                    values ($3, 'default', $2, $1, 'letters.one', 'failed', 'attempts_exhausted') returning *)
         insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, expires_at)
         select id, 1, tenant_id, event_id, endpoint_id, type, reason, 6, now() + interval '30 days' from d`,
        [id, event, newId('whd_')],
      );
    };
    await addLetter();
    await core.gateway.letterAdded(id);
    const { runId } = await client().workflow.getHandle(workflowId).describe();
    await signalManyTimes(workflowId, () => core.gateway.letterAdded(id), addLetter);
    await addLetter();
    await core.gateway.letterAdded(id);
    const counts = async (): Promise<number[]> => {
      const { body } = await api.get(`/v1/notices?endpoint_id=${id}&type=delivery.exhausted&limit=250`);
      return (body.data as { data: { count: number } }[]).map(({ data }) => data.count);
    };
    await until(
      'all letters are told of',
      async () => (await counts()).reduce((sum, n) => sum + n, 0) >= letters,
      120_000,
    );
    expect((await counts()).reduce((sum, n) => sum + n, 0)).toBe(letters);
    // A window of 45 s each, and one that was cut goes on in the next run.
    expect((await counts()).length).toBeLessThan(15);
    await expectSound(workflowId, await runsOf(workflowId, runId));
  });
});
