import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelDelivery } from '../support/delivery-model.js';
import { WorkflowEngine } from '../support/workflow-engine.js';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

let engine: WorkflowEngine;
beforeAll(async () => void (engine = await WorkflowEngine.start()));
afterAll(() => engine.stop());

/** The pauses between the requests that left, in milliseconds. */
const pauses = ({ sentAtMs }: ModelDelivery): number[] => sentAtMs.slice(1).map((at, i) => at - sentAtMs[i]!);

/** Timers fire a little late, never early. */
const slackMs = 5 * second;

function expectWithin(ms: number | undefined, least: number, most: number): void {
  expect(ms).toBeGreaterThanOrEqual(least);
  expect(ms).toBeLessThanOrEqual(most + slackMs);
}

const withJitter = (ms: number): [least: number, most: number] => [0.8 * ms, 1.2 * ms];

describe('a delivery whose endpoint never accepts it', () => {
  it('is tried six times, after waits within 20 % of 1 m, 5 m, 30 m, 2 h and 12 h, and ends as DeliveryExhausted', async () => {
    const delivery = engine.model.add([500, 500, 500, 500, 500, 500, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'FAILED', failure: 'DeliveryExhausted' });
    expect(delivery.sentAtMs).toHaveLength(6);
    const schedule = [minute, 5 * minute, 30 * minute, 2 * hour, 12 * hour];
    for (const [index, wait] of pauses(delivery).entries()) expectWithin(wait, ...withJitter(schedule[index]!));
    expect(delivery.row).toMatchObject({ status: 'failed', reason: 'attempts_exhausted', attemptCount: 6 });
    expect(delivery.letters).toEqual([{ round: 1, reason: 'attempts_exhausted' }]);
  });

  it('waits another time than its neighbours after the same outage', async () => {
    const deliveries = Array.from({ length: 8 }, () => engine.model.add([503, 200]));
    await Promise.all(deliveries.map((delivery) => engine.dispatch(delivery)));
    for (const { id } of deliveries) expect(await engine.ending(id)).toMatchObject({ status: 'COMPLETED' });
    const waits = new Set(deliveries.map(({ attempts }) => attempts[0]!.waitMs));
    expect(waits.size).toBeGreaterThan(4);
  });

  it('names each attempt and its host beside it on the timeline', async () => {
    const delivery = engine.model.add([500, 500, 200]);
    const handle = await engine.dispatch(delivery);
    await engine.ending(delivery.id);
    const { events } = await handle.fetchHistory();
    const summaries = (events ?? [])
      .filter((event) => event.activityTaskScheduledEventAttributes)
      .map((event) => Buffer.from(event.userMetadata!.summary!.data!).toString());
    expect(summaries).toEqual(['"attempt 2 → hooks.example.com"', '"attempt 3 → hooks.example.com"']);
  });

  it('follows the schedule that replaces the profile’s', async () => {
    const delivery = engine.model.add([500, 500, 500, 500], {}, { retryWaitsMs: [10 * second, 20 * second] });
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'FAILED', failure: 'DeliveryExhausted' });
    const [first, next, ...more] = pauses(delivery);
    expectWithin(first, ...withJitter(10 * second));
    expectWithin(next, ...withJitter(20 * second));
    expect(more).toEqual([]);
  });
});

describe('what an answer does to the schedule', () => {
  it('a 410 ends the delivery at once as EndpointGone', async () => {
    const delivery = engine.model.add([410, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'FAILED', failure: 'EndpointGone' });
    expect(delivery.sentAtMs).toHaveLength(1);
    expect(delivery.row).toMatchObject({ status: 'failed', reason: 'endpoint_gone' });
  });

  it('a 410 in the middle of the schedule ends it as well', async () => {
    const delivery = engine.model.add([500, 410, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'FAILED', failure: 'EndpointGone' });
    expect(delivery.sentAtMs).toHaveLength(2);
  });

  it.each([401, 403])(
    'a %i from an endpoint that used to accept makes it rest half an hour, within jitter',
    async (status) => {
      const delivery = engine.model.add([status, 200], {}, { succeededBefore: true });
      await engine.dispatch(delivery);
      expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
      expectWithin(pauses(delivery)[0], ...withJitter(30 * minute));
    },
  );

  it.each([401, 403])('a %i from an endpoint that never accepted is a failure like others', async (status) => {
    const delivery = engine.model.add([status, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expectWithin(pauses(delivery)[0], ...withJitter(minute));
  });

  it.each([429, 503])('Retry-After of a %i lengthens the wait', async (status) => {
    const delivery = engine.model.add([{ status, retryAfter: '7200' }, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expectWithin(pauses(delivery)[0], 2 * hour, 2 * hour);
  });

  it('Retry-After never shortens the wait', async () => {
    const delivery = engine.model.add([500, 500, { status: 429, retryAfter: '1' }, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expectWithin(pauses(delivery)[2], ...withJitter(30 * minute));
  });

  it('Retry-After counts for at most 24 hours', async () => {
    const delivery = engine.model.add([{ status: 503, retryAfter: '99999999' }, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expectWithin(pauses(delivery)[0], 24 * hour, 24 * hour);
  });

  it('Retry-After of a 500 means nothing', async () => {
    const delivery = engine.model.add([{ status: 500, retryAfter: '7200' }, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expectWithin(pauses(delivery)[0], ...withJitter(minute));
  });
});

describe('an attempt for which nothing left the machine', () => {
  it('spends no attempt, keeps its sequence, and is repeated after waits that grow to 30 s', async () => {
    const delivery = engine.model.add([500, 200]);
    delivery.loadFailures = 8;
    const startedAtMs = await engine.model.nowMs();
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.attempts.map(({ sequence, number }) => [sequence, number])).toEqual([
      [1, 1],
      [2, 2],
    ]);
    // 1 + 2 + 4 + 8 + 16 + 30 + 30 + 30 s.
    expectWithin(delivery.sentAtMs[0]! - startedAtMs, ...withJitter(121 * second));
  });

  it('because this process has no connection free does not count against the endpoint', async () => {
    const delivery = engine.model.add([{ status: null, errorCode: 'timeout_connect', noSlot: true }, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.attempts).toHaveLength(1);
    expect(delivery.row).toMatchObject({ attemptCount: 1, status: 'succeeded' });
  });

  it('for want of a connection is repeated every five seconds at least', async () => {
    const full = { status: null, errorCode: 'timeout_connect', noSlot: true } as const;
    const delivery = engine.model.add([full, full, full, full, full, full, 200]);
    const startedAtMs = await engine.model.nowMs();
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    // 1 + 2 + 4 + 5 + 5 + 5 s.
    expectWithin(delivery.sentAtMs[0]! - startedAtMs, ...withJitter(22 * second));
  });
});

describe('the first attempt', () => {
  it('that succeeds costs exactly six events', async () => {
    const delivery = engine.model.add([200]);
    const handle = await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toEqual({
      status: 'COMPLETED',
      failure: null,
      result: { status: 'succeeded', round: 1, attempts: 1 },
    });
    const { events } = await handle.fetchHistory();
    expect(events).toHaveLength(6);
  });

  it('of an endpoint that is not quick is an ordinary activity, and is sent once', async () => {
    const delivery = engine.model.add([200], {}, { quick: false });
    const handle = await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.sentAtMs).toHaveLength(1);
    const { events } = await handle.fetchHistory();
    const scheduled = (events ?? []).filter((event) => event.activityTaskScheduledEventAttributes);
    expect(scheduled.map((event) => event.activityTaskScheduledEventAttributes!.taskQueue!.name)).toEqual([
      'posthorn-attempts',
    ]);
  });

  it('waits until its row is due, and spends nothing on finding that out', async () => {
    const nowMs = await engine.model.nowMs();
    const delivery = engine.model.add([200], {
      nextAttemptAtMs: nowMs + 10 * minute,
      attemptCount: 1,
      roundAttempts: 1,
    });
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expectWithin(delivery.sentAtMs[0]! - nowMs, 10 * minute, 10 * minute);
    expect(delivery.row.attemptCount).toBe(2);
  });

  it('waits until its endpoint has rested, and a little longer, so that not all come at once', async () => {
    const nowMs = await engine.model.nowMs();
    const delivery = engine.model.add([200], {}, { notBeforeMs: nowMs + hour });
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expectWithin(delivery.sentAtMs[0]! - nowMs, hour, 1.2 * hour);
  });
});

describe('an endpoint that changes while a delivery waits', () => {
  it('paused: the row is held and the run ends, with nothing sent', async () => {
    const delivery = engine.model.add([200], {}, { status: 'paused' });
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { status: 'held' } });
    expect(delivery.sentAtMs).toEqual([]);
    expect(delivery.row.status).toBe('held');
  });

  it('deleted: the run ends as Cancelled', async () => {
    const delivery = engine.model.add([500, 200]);
    delivery.answers[0] = async () => {
      delivery.endpoint.deleted = true;
      return 500;
    };
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'CANCELLED' });
    expect(delivery.row).toMatchObject({ status: 'cancelled', reason: 'endpoint_deleted' });
    expect(delivery.sentAtMs).toHaveLength(1);
  });

  it('disabled: the run ends as EndpointDisabled', async () => {
    const delivery = engine.model.add([200], {}, { status: 'disabled' });
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'FAILED', failure: 'EndpointDisabled' });
    expect(delivery.sentAtMs).toEqual([]);
  });
});
