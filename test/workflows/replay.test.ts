import { Client } from '@temporalio/client';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { inject } from 'vitest';
import type { ReplayActivities } from '../../activities/contracts/replay-activities.js';
import type { ReplayStatus } from '../../src/domain/replays.js';
import { newId } from '../../src/security/new-id.js';
import type { TemporalConnection } from '../../src/temporal/connection.js';
import { TemporalGateway } from '../../src/temporal/gateway.js';
import { installRuntime } from '../../src/temporal/worker-host.js';
import type { ReplayProgress } from '../../workflows/contracts/replay.js';
import { findTemporalTestServer } from '../support/temporal-test-server.js';
import { until } from '../support/posthorn.js';
import { silentLog } from '../support/workflow-engine.js';

/** A replay as its row is: the activities over it, without a database. */
class ReplayModel implements ReplayActivities {
  status: ReplayStatus = 'running';
  started = 0;
  batches = 0;
  /** So many at a time; between two batches so long. */
  perBatch = 100;
  waitMs = 1_000;
  constructor(readonly total: number) {}

  async startReplayBatch() {
    this.batches += 1;
    if (this.status === 'running') this.started = Math.min(this.total, this.started + this.perBatch);
    if (this.status === 'running' && this.started === this.total) this.status = 'completed';
    const { status, total, started, waitMs } = this;
    return { kind: 'started', status, total, started, skipped: 0, ratePerSecond: 20, waitMs } as const;
  }

  async changeReplay({ wish }: { wish: 'pause' | 'resume' | 'cancel' }) {
    if (this.status === 'completed' || this.status === 'cancelled') return;
    this.status = wish === 'pause' ? 'paused' : wish === 'resume' ? 'running' : 'cancelled';
  }
}

let env: TestWorkflowEnvironment;
let gateway: TemporalGateway;
let worker: Worker;
let running: Promise<void>;
const models = new Map<string, ReplayModel>();
let id: string;

beforeAll(async () => {
  installRuntime(silentLog);
  env = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path: await findTemporalTestServer() } },
  });
  const namespace = env.namespace ?? 'default';
  const client = new Client({ connection: env.connection, namespace });
  gateway = new TemporalGateway({ client, namespace } as unknown as TemporalConnection, silentLog, {
    alertWindowMs: 60_000,
  });
  const activities: ReplayActivities = {
    startReplayBatch: async (input) => models.get(input.replayId)?.startReplayBatch() ?? { kind: 'unknown_replay' },
    changeReplay: async (input) => models.get(input.replayId)?.changeReplay(input),
  };
  worker = await Worker.create({
    connection: env.nativeConnection,
    namespace,
    taskQueue: 'posthorn-control',
    workflowBundle: { codePath: inject('workflowBundle') },
    activities: { ...activities },
  });
  running = worker.run();
});
afterAll(async () => {
  worker.shutdown();
  await running;
  await env.teardown();
});
beforeEach(() => void (id = newId('rpl_')));

const handle = () => env.client.workflow.getHandle(`replay/${id}`);
const progress = () => handle().query<ReplayProgress>('progress');
const statusOf = async () => (await handle().describe()).status.name;

async function begin(total: number, settings: Partial<ReplayModel> = {}): Promise<ReplayModel> {
  const model = Object.assign(new ReplayModel(total), settings);
  models.set(id, model);
  await gateway.replayChanged(id);
  return model;
}

/** It waits for hours of a clock that stands still while nobody asks for a result. */
const slow = { perBatch: 1, waitMs: 3_600_000 };

describe('the workflow of a replay', () => {
  it('goes on until nothing is left, at the pace that its activity says', async () => {
    const startedAt = await env.currentTimeMs();
    const model = await begin(1_000);
    expect(await handle().result()).toEqual({
      status: 'completed',
      total: 1_000,
      started: 1_000,
      skipped: 0,
      waiting: 0,
      ratePerSecond: 20,
    });
    expect(model.batches).toBe(10);
    expect((await env.currentTimeMs()) - startedAt).toBeGreaterThanOrEqual(9_000 - 100);
  });

  it('pauses, resumes and cancels by signals, and tells its progress', async () => {
    const model = await begin(10, slow);
    await until('the first is started', async () => (await progress()).started === 1);
    await handle().signal('pause');
    await until('it is paused', async () => (await progress()).status === 'paused');
    const { batches } = model;
    await handle().signal('wake');
    await until('it has looked again', async () => model.batches > batches);
    expect(model).toMatchObject({ status: 'paused', started: 1 });
    await handle().signal('resume');
    await until('it goes on', async () => (await progress()).started === 2);
    expect(await progress()).toMatchObject({ status: 'running', waiting: 8 });
    await handle().signal('cancel');
    expect(await handle().result()).toMatchObject({ status: 'cancelled', started: 2, waiting: 8 });
    expect(await statusOf()).toBe('COMPLETED');
  });

  it('takes a cancellation by Temporal for a cancellation', async () => {
    const model = await begin(10, slow);
    await until('the first is started', async () => (await progress()).started === 1);
    await handle().cancel();
    await expect(handle().result()).rejects.toThrow();
    expect(await statusOf()).toBe('CANCELLED');
    expect(model.status).toBe('cancelled');
  });

  it('looks at its row when it is told of a change, and starts where nobody works on it', async () => {
    const model = await begin(10, slow);
    await until('the first is started', async () => (await progress()).started === 1);
    model.status = 'cancelled';
    await gateway.replayChanged(id);
    expect(await handle().result()).toMatchObject({ status: 'cancelled' });
    // Its store was wiped, say: the sweeper starts it anew, and it ends at once.
    await gateway.replayChanged(id);
    expect(await handle().result()).toMatchObject({ status: 'cancelled', started: 1 });
  });

  it('continues as new before its history grows long', async () => {
    const model = await begin(600, { perBatch: 1, waitMs: 1_000 });
    await until('it has begun', async () => model.batches > 0);
    const { runId } = await handle().describe();
    expect(await handle().result()).toMatchObject({ status: 'completed', started: 600 });
    expect(model.batches).toBe(600);
    const first = await env.client.workflow.getHandle(`replay/${id}`, runId).describe();
    expect(first.status.name).toBe('CONTINUED_AS_NEW');
    expect(first.historyLength).toBeLessThan(2_100);
    expect((await handle().describe()).runId).not.toBe(runId);
  }, 120_000);

  it.each([
    ['no such replay', () => ({ replayId: id })],
    ['another id than its own', () => ({ replayId: newId('rpl_') })],
    ['no input', () => undefined],
  ])('fails by name with %s', async (_, input) => {
    await env.client.workflow.start('replay', {
      workflowId: `replay/${id}`,
      taskQueue: 'posthorn-control',
      args: [input()],
    });
    await expect(handle().result()).rejects.toMatchObject({ cause: { type: 'InvalidInput' } });
  });
});
