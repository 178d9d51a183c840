import type { WorkflowHandle } from '@temporalio/client';
import { scheduleIds } from '../../workflows/contracts/names.js';
import { makeLetters } from '../support/letters.js';
import { type RunningPosthorn, until } from '../support/posthorn.js';

/** Plays a story on all of Posthorn and a development server to its end, and answers the workflow whose history is to be kept. */
export type WholeScenario = (posthorn: RunningPosthorn, receiverUrl: string) => Promise<WorkflowHandle>;

let stories = 0;

/** Dead letters of an endpoint of their own that answers again, and the replay of them, one a second. */
async function replayLetters(posthorn: RunningPosthorn, receiverUrl: string, count: number): Promise<WorkflowHandle> {
  const story = `story${++stories}`;
  const { id } = await posthorn.api.createEndpoint(`${receiverUrl}/${story}`, [`${story}.*`]);
  await makeLetters(posthorn, id, `${story}.letter`, count);
  const { body } = await posthorn.api.post('/v1/dead-letters/replay', {
    filter: { endpoint_id: id },
    rate_per_second: 1,
  });
  const handle = posthorn.core.temporal.client!.workflow.getHandle(`replay/${body.id}`);
  await until('a batch is over, and it waits for the next', async () => {
    const { events } = await handle.fetchHistory();
    return events?.some((event) => event.timerStartedEventAttributes);
  });
  return handle;
}

/** What the schedule starts, now. */
async function scheduled({ core }: RunningPosthorn, name: keyof typeof scheduleIds): Promise<WorkflowHandle> {
  const { schedule, workflow } = core.temporal.client!;
  const handle = schedule.getHandle(scheduleIds[name]);
  const before = await until('the schedule is there', async () => (await handle.describe()).info);
  await handle.trigger();
  const id = await until(`${name} has been started`, async () => {
    const { numActionsTaken, recentActions } = (await handle.describe()).info;
    return numActionsTaken > before.numActionsTaken && recentActions.at(-1)?.action.workflow.workflowId;
  });
  const started = workflow.getHandle(id);
  await started.result();
  return started;
}

const statusOf = async (handle: WorkflowHandle): Promise<string> => (await handle.describe()).status.name;

/** A history's name says what it pins. */
export const wholeScenarios: Record<string, WholeScenario> = {
  'replay-to-its-end': async (posthorn, receiverUrl) => {
    const handle = await replayLetters(posthorn, receiverUrl, 12);
    await handle.result();
    return handle;
  },
  'replay-paused-resumed-cancelled': async (posthorn, receiverUrl) => {
    const handle = await replayLetters(posthorn, receiverUrl, 60);
    const becomes = (status: string) =>
      until(`it is ${status}`, async () => (await handle.query<{ status: string }>('progress')).status === status);
    await handle.signal('pause');
    await becomes('paused');
    await handle.signal('wake');
    await handle.signal('resume');
    await becomes('running');
    await handle.signal('cancel');
    await handle.result();
    return handle;
  },
  'replay-cancellation-requested': async (posthorn, receiverUrl) => {
    const handle = await replayLetters(posthorn, receiverUrl, 60);
    await handle.cancel();
    await until('it is closed', async () => (await statusOf(handle)) === 'CANCELLED');
    return handle;
  },
  'purge-of-all-kinds': (posthorn) => scheduled(posthorn, 'purge'),
  'reconcile-in-order': (posthorn) => scheduled(posthorn, 'reconcile'),
  'reconcile-with-gaps': async (posthorn, receiverUrl) => {
    await posthorn.api.createEndpoint(`${receiverUrl}/lost`, ['lost.*']);
    const { deliveries } = await posthorn.api.publish('lost.one');
    const { id } = deliveries[0]!;
    await posthorn.api.delivery(id, '20s');
    await posthorn.core.db.query('delete from attempts where delivery_id = $1', [id]);
    await posthorn.core.db.query('delete from deliveries where id = $1', [id]);
    return scheduled(posthorn, 'reconcile');
  },
};
