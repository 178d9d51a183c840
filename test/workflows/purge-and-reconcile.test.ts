import { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { ActivityFamilies } from '../../activities/index.js';
import type { ComparedRows, ReconcileReport } from '../../activities/contracts/reconcile-activities.js';
import type { PurgeSomeInput, PurgeSomeResult } from '../../activities/contracts/retention-activities.js';
import { installRuntime, WorkerHost } from '../../src/temporal/worker-host.js';
import { purgeSteps } from '../../workflows/contracts/purge.js';
import { taskQueues } from '../../workflows/contracts/names.js';
import '../support/provided.js';
import { findTemporalTestServer } from '../support/temporal-test-server.js';
import { silentLog } from '../support/workflow-engine.js';

const nothing = { repaired: {}, gaps: {}, examples: {} };
const rows = (changes: Partial<ComparedRows> = {}): ComparedRows => ({
  examined: 0,
  after: null,
  ...nothing,
  ...changes,
});

let env: TestWorkflowEnvironment;
let host: WorkerHost;
let purgeSome: (input: PurgeSomeInput) => PurgeSomeResult | Promise<PurgeSomeResult>;
let compareDeliveries: (after: string | null) => ComparedRows;
let compareWorkflows: () => { examined: number; cut: boolean; unknown: number; examples: string[] };
let reports: ReconcileReport[];
let listings: number;

beforeAll(async () => {
  installRuntime(silentLog);
  env = await TestWorkflowEnvironment.createTimeSkipping({
    server: { executable: { type: 'existing-path', path: await findTemporalTestServer() } },
  });
  host = await WorkerHost.start({
    connection: env.nativeConnection,
    namespace: env.namespace ?? 'default',
    activities: {
      deliver: {},
      attempts: { attempt: async () => undefined },
      control: {
        purgeSome: async (input: PurgeSomeInput) => purgeSome(input),
        planReconciliation: async () => ({
          startedAt: '2026-03-01T12:00:00.000Z',
          from: '2026-02-28T12:00:00.000Z',
          deliveriesAfter: null,
          eventsAfter: null,
          workflowsFrom: '2026-03-01T11:40:00.000Z',
          lost: null,
        }),
        repairWaiting: async () => ({
          repaired: { waiting_unswept: 2 },
          gaps: {},
          examples: { waiting_unswept: ['whd_a'] },
        }),
        compareDeliveries: async ({ after }: { after: string | null }) => compareDeliveries(after),
        compareEvents: async () => rows({ examined: 5 }),
        compareWorkflows: async () => ((listings += 1), compareWorkflows()),
        keepReport: async (report: ReconcileReport) => void reports.push(report),
      },
    } as unknown as ActivityFamilies,
    maxConcurrentAttempts: 10,
    log: silentLog,
    bundlePath: inject('workflowBundle'),
  });
});
afterAll(async () => {
  await host.stop();
  await env.teardown();
});

beforeEach(() => {
  reports = [];
  listings = 0;
  compareDeliveries = () => rows({ examined: 3 });
  compareWorkflows = () => ({ examined: 7, cut: false, unknown: 0, examples: [] });
});

let started = 0;
const start = (type: string) =>
  env.client.workflow.start(type, { workflowId: `${type}-${(started += 1)}`, taskQueue: taskQueues.control, args: [] });

describe('purge', () => {
  it('goes through its steps in order, from cursor to cursor, and counts', async () => {
    const asked: string[] = [];
    purgeSome = ({ step, after }) => {
      asked.push(`${step} ${after}`);
      return step === 'attempts' && after !== 'c2'
        ? { removed: 10, after: after === null ? 'c1' : 'c2' }
        : { removed: 1, after: null };
    };
    const handle = await start('purge');
    expect(await handle.result()).toEqual(
      Object.fromEntries(purgeSteps.map((step) => [step, step === 'attempts' ? 21 : 1])),
    );
    expect(asked).toEqual(
      purgeSteps.flatMap((step) =>
        step === 'attempts' ? ['attempts null', 'attempts c1', 'attempts c2'] : [`${step} null`],
      ),
    );
    expect(await handle.query('state')).toMatchObject({ step: null, removed: { attempts: 21 } });
  });

  it('tells how far it is while it runs', async () => {
    let release!: () => void;
    const held = new Promise<void>((resolve) => (release = resolve));
    purgeSome = async ({ step }) => {
      if (step === 'attempts') await held;
      return { removed: 4, after: null };
    };
    const handle = await start('purge');
    let state: unknown;
    do state = await handle.query('state');
    while ((state as { step: string }).step !== 'payloads');
    expect(state).toMatchObject({ step: 'payloads', removed: { idempotency_keys: 4, payloads: 4, attempts: 0 } });
    release();
    await handle.result();
  });

  it('continues as new in the middle of a long step, with a bounded history', async () => {
    let calls = 0;
    purgeSome = ({ step }) =>
      step === 'payloads'
        ? { removed: 1, after: (calls += 1) < 400 ? `c${calls}` : null }
        : { removed: 0, after: null };
    const handle = await start('purge');
    expect(await handle.result()).toMatchObject({ payloads: 400 });
    expect(calls).toBe(400);
    const { runId } = await env.client.workflow.getHandle(handle.workflowId).describe();
    expect(runId).not.toBe(handle.firstExecutionRunId);
    const first = await env.client.workflow.getHandle(handle.workflowId, handle.firstExecutionRunId).fetchHistory();
    expect(first.events!.length).toBeLessThan(1_100);
  });
});

describe('reconcile', () => {
  it('adds up what was found, and keeps it as its report', async () => {
    compareDeliveries = (after) =>
      after === null
        ? rows({ examined: 10, after: 'whd_10', gaps: { succeeded_without_attempt: 1 } })
        : rows({
            examined: 2,
            gaps: { succeeded_without_attempt: 2 },
            examples: { succeeded_without_attempt: ['whd_b'] },
          });
    compareWorkflows = () => ({ examined: 9, cut: true, unknown: 3, examples: ['whd_c'] });
    const report = (await (await start('reconcile')).result()) as ReconcileReport;
    expect(reports).toEqual([report]);
    expect(report).toMatchObject({
      examined: { deliveries: 12, events: 5, workflows: 9 },
      repaired: { waiting_unswept: 2 },
      gaps: { succeeded_without_attempt: 3, workflow_without_delivery: 3 },
      examples: {
        waiting_unswept: ['whd_a'],
        succeeded_without_attempt: ['whd_b'],
        workflow_without_delivery: ['whd_c'],
      },
      deliveriesAfter: null,
      workflowsCut: true,
      lost: { count: 3, foundAt: '2026-03-01T12:00:00.000Z' },
    });
  });

  it('stops after some calls, and says where the next run goes on', async () => {
    let calls = 0;
    compareDeliveries = () => rows({ examined: 1, after: `whd_${(calls += 1)}` });
    const report = (await (await start('reconcile')).result()) as ReconcileReport;
    expect([calls, report.examined.deliveries, report.deliveriesAfter]).toEqual([10, 10, 'whd_10']);
  });

  it('reports all the rest where Temporal can not list', async () => {
    compareWorkflows = () => {
      throw new Error('this server can not list');
    };
    const report = (await (await start('reconcile')).result()) as ReconcileReport;
    expect(listings).toBe(3);
    expect(report).toMatchObject({
      examined: { events: 5, workflows: null },
      repaired: { waiting_unswept: 2 },
      lost: null,
    });
  });
});
