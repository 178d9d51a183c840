import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createReconcileActivities } from '../../activities/reconcile.js';
import type { ReconcileReport } from '../../activities/contracts/reconcile-activities.js';
import type { ActivityDependencies } from '../../activities/ports.js';
import { ReconcileStore } from '../../src/database/reconcile-store.js';
import { RecordingReceiver } from '../support/posthorn.js';
import { Attempts } from './attempts/harness.js';
import { day, inThePast } from './past.js';

const hour = 3_600_000;
let attempts: Attempts;
let store: ReconcileStore;
let receiver: RecordingReceiver;
let endpointId: string;

beforeAll(async () => {
  attempts = await Attempts.start();
  store = new ReconcileStore(attempts.db, 90 * day);
  receiver = await RecordingReceiver.start();
  endpointId = await attempts.createEndpoint(receiver.url);
  await attempts.sql(`update endpoints set created_at = now() - interval '30 days', updated_at = now() - interval '30 days',
                             status_changed_at = now() - interval '30 days'`);
});
afterAll(async () => {
  await receiver.stop();
  await attempts.db.destroy();
});

const from = (): string => new Date(Date.now() - day).toISOString();
const compareDeliveries = () => store.compareDeliveries({ from: from(), after: null });
const compareEvents = () => store.compareEvents({ from: from(), after: null });

describe('reconciliation', () => {
  it('finds nothing where all is as it should be', async () => {
    await inThePast(attempts, endpointId, { ageMs: hour });
    await inThePast(attempts, endpointId, { ageMs: hour, status: 'retrying' });
    await inThePast(attempts, endpointId, { ageMs: hour, status: 'failed', letter: 'open' });
    await inThePast(attempts, endpointId, { ageMs: hour, status: 'cancelled' });
    const [delivery] = await attempts.publishTo(endpointId);
    await attempts.attempt(delivery!);
    expect(await store.repairWaiting()).toEqual({ repaired: {}, gaps: {}, examples: {} });
    expect(await compareDeliveries()).toMatchObject({ after: null, repaired: {}, gaps: {} });
    expect(await compareEvents()).toMatchObject({ after: null, repaired: {}, gaps: {} });
    expect((await compareDeliveries()).examined).toBeGreaterThanOrEqual(4);
  });

  it('sets a waiting delivery that nobody would find to be swept', async () => {
    const lost = await inThePast(attempts, endpointId, { ageMs: 3 * day, status: 'retrying' });
    await attempts.sql('update deliveries set sweep_after = null where id = $1', [lost.id]);
    expect(await store.repairWaiting()).toMatchObject({
      repaired: { waiting_unswept: 1 },
      examples: { waiting_unswept: [lost.id] },
    });
    expect((await attempts.row(lost)).sweep_after).toBeInstanceOf(Date);
    expect((await store.repairWaiting()).repaired).toEqual({});
  });

  it('tells of waiting deliveries that are late, and leaves them to the sweeper', async () => {
    const late = await inThePast(attempts, endpointId, { ageMs: hour, status: 'pending' });
    await attempts.sql(`update deliveries set sweep_after = now() - interval '6 minutes' where id = $1`, [late.id]);
    expect(await store.repairWaiting()).toMatchObject({
      gaps: { waiting_overdue: 1 },
      examples: { waiting_overdue: [late.id] },
    });
    await attempts.sql(`update deliveries set sweep_after = now() where id = $1`, [late.id]);
  });

  it('writes the letter that a failed delivery lacks', async () => {
    const silent = await inThePast(attempts, endpointId, { ageMs: hour, status: 'failed' });
    expect(await compareDeliveries()).toMatchObject({
      repaired: { failed_without_letter: 1 },
      examples: { failed_without_letter: [silent.id] },
    });
    const letters = await attempts.sql(
      'select round, resolved_at, announced_at from dead_letters where delivery_id = $1',
      [silent.id],
    );
    expect(letters).toEqual([{ round: 1, resolved_at: null, announced_at: null }]);
    expect((await compareDeliveries()).repaired).toEqual({});
  });

  it('resolves the letter of a delivery that succeeded, and tells of one whose delivery is not failed', async () => {
    const done = await inThePast(attempts, endpointId, { ageMs: hour, status: 'succeeded', letter: 'open' });
    const odd = await inThePast(attempts, endpointId, { ageMs: hour, status: 'cancelled', letter: 'open' });
    expect(await store.repairWaiting()).toMatchObject({
      repaired: { letter_of_success: 1 },
      gaps: { letter_without_failure: 1 },
      examples: { letter_of_success: [done.id], letter_without_failure: [odd.id] },
    });
    const [letter] = await attempts.sql('select resolution from dead_letters where delivery_id = $1', [done.id]);
    expect(letter).toEqual({ resolution: 'replayed' });
    await attempts.sql(`update dead_letters set resolved_at = now() where delivery_id = $1`, [odd.id]);
  });

  it('tells of a success without an attempt that delivered', async () => {
    const unsent = await inThePast(attempts, endpointId, { ageMs: hour, status: 'succeeded', attempts: 0 });
    expect(await compareDeliveries()).toMatchObject({
      gaps: { succeeded_without_attempt: 1 },
      examples: { succeeded_without_attempt: [unsent.id] },
    });
    await attempts.sql('delete from deliveries where id = $1', [unsent.id]);
    await attempts.sql('delete from events where id = $1', [unsent.eventId]);
  });

  it('tells of deliveries that are held where nothing holds them', async () => {
    const held = await inThePast(attempts, endpointId, { ageMs: 2 * hour, status: 'held' });
    expect(await store.repairWaiting()).toMatchObject({
      gaps: { held_too_long: 1 },
      examples: { held_too_long: [held.id] },
    });
    await attempts.sql(`update endpoints set status = 'paused' where id = $1`, [endpointId]);
    expect((await store.repairWaiting()).gaps).toEqual({});
    await attempts.sql(`update endpoints set status = 'active' where id = $1`, [endpointId]);
    await attempts.sql(`update deliveries set status = 'cancelled' where id = $1`, [held.id]);
  });

  it('tells of an event that never became a delivery, unless its endpoint has changed since', async () => {
    const missed = await inThePast(attempts, endpointId, { ageMs: hour, attempts: 0 });
    await attempts.sql('delete from deliveries where id = $1', [missed.id]);
    await attempts.sql('update events set type = (select events[1] from endpoints where id = $2) where id = $1', [
      missed.eventId,
      endpointId,
    ]);
    expect(await compareEvents()).toMatchObject({
      gaps: { event_without_delivery: 1 },
      examples: { event_without_delivery: [missed.eventId] },
    });
    await attempts.sql('update endpoints set updated_at = now() where id = $1', [endpointId]);
    expect((await compareEvents()).gaps).toEqual({});
  });

  it('walks through more than one batch, and goes on where it stopped', async () => {
    const before = (await compareEvents()).examined;
    await attempts.sql(
      `insert into events (tenant_id, id, type, data, created_at, accepted_at, body_hash)
       select 'walk', 'walk-' || n, 'walk.taken', '{}', now(), now() - interval '3 hours', '\\x00' from generate_series(1, 2500) n`,
    );
    const first = await compareEvents();
    expect(first.examined).toBe(2_000);
    const second = await store.compareEvents({ from: from(), after: first.after });
    expect([second.examined, second.after]).toEqual([before + 500, null]);
  });

  it('knows which deliveries Temporal worked on that the database does not have', async () => {
    const known = await inThePast(attempts, endpointId, { ageMs: hour });
    const asked: Date[] = [];
    const activities = createReconcileActivities({
      reconciliation: store,
      deliveryRuns: {
        startedSince: async (since: Date) => (asked.push(since), [known.id, 'whd_01KC0000000000000000000009']),
      },
      now: Date.now,
      log: { info: () => undefined, warn: () => undefined },
    } as unknown as ActivityDependencies);
    const result = await activities.compareWorkflows({ from: '2026-01-01T00:00:00.000Z' });
    expect(result).toEqual({ examined: 2, cut: false, unknown: 1, examples: ['whd_01KC0000000000000000000009'] });
    expect(asked).toEqual([new Date('2026-01-01T00:00:00.000Z')]);
  });

  it('keeps its report, and begins the next run where this one began', async () => {
    expect(await store.lastReport()).toBeNull();
    const plan = await store.plan();
    expect(plan.workflowsFrom).toBe(plan.from);
    const report: ReconcileReport = {
      startedAt: plan.startedAt,
      finishedAt: plan.startedAt,
      from: plan.from,
      examined: { deliveries: 1, events: 1, workflows: 1 },
      repaired: {},
      gaps: { workflow_without_delivery: 1 },
      examples: {},
      deliveriesAfter: 'whd_x',
      eventsAfter: null,
      workflowsCut: false,
      lost: { foundAt: plan.startedAt, count: 1, examples: ['whd_1'] },
    };
    await store.keep(report);
    expect(await store.lastReport()).toEqual(report);
    const next = await store.plan();
    expect(next).toMatchObject({ deliveriesAfter: 'whd_x', eventsAfter: null, lost: report.lost });
    expect(Date.parse(plan.startedAt) - Date.parse(next.workflowsFrom)).toBe(10 * 60_000);
    await store.keep({ ...report, lost: { ...report.lost!, foundAt: new Date(Date.now() - 8 * day).toISOString() } });
    expect((await store.plan()).lost).toBeNull();
  });
});
