import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WorkflowHandle } from '@temporalio/client';
import { heldAnswer, type ModelDelivery } from '../support/delivery-model.js';
import { until } from '../support/posthorn.js';
import { WorkflowEngine } from '../support/workflow-engine.js';
import type { DeliverState } from '../../workflows/contracts/deliver.js';

const second = 1_000;

let engine: WorkflowEngine;
beforeAll(async () => void (engine = await WorkflowEngine.start()));
afterAll(() => engine.stop());

const state = (delivery: ModelDelivery): Promise<DeliverState> =>
  engine.handle(delivery.id).query<DeliverState>('state');

/** A delivery that has failed once and waits for its second attempt. */
async function waiting(delivery: ModelDelivery = engine.model.add([500])): Promise<ModelDelivery> {
  await engine.dispatch(delivery);
  await until('it waits', async () => (await state(delivery)).phase === 'waiting');
  return delivery;
}

const apiRedelivers = async (delivery: ModelDelivery): Promise<void> => {
  delivery.openNextRound(await engine.model.nowMs());
  await engine.gateway.redeliver(delivery.start);
};

describe.each<[string, (handle: WorkflowHandle, delivery: ModelDelivery) => Promise<unknown>]>([
  ['the signal', (handle) => handle.signal('cancel')],
  ['Temporal’s Request Cancellation', (handle) => handle.cancel()],
  [
    'the API, row first',
    async (_, delivery) => {
      delivery.cancelRow();
      await engine.gateway.cancel(delivery.id);
    },
  ],
])('a cancellation by %s', (_, cancel) => {
  it('while the delivery waits ends it as Cancelled at once', async () => {
    const delivery = await waiting();
    const sinceMs = await engine.model.nowMs();
    await cancel(engine.handle(delivery.id), delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'CANCELLED' });
    expect(delivery.row).toMatchObject({ status: 'cancelled', reason: 'cancelled_by_request' });
    expect(delivery.sentAtMs).toHaveLength(1);
    const { closeTime } = await engine.handle(delivery.id).describe();
    expect(closeTime!.getTime() - sinceMs).toBeLessThan(20 * second);
  });

  it('in the middle of a first attempt keeps its success', async () => {
    const held = heldAnswer();
    const delivery = engine.model.add([held.answer]);
    const handle = await engine.dispatch(delivery);
    await held.arrived;
    await cancel(handle, delivery);
    held.give(200);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { status: 'succeeded' } });
    expect(delivery.sentAtMs).toHaveLength(1);
    expect(delivery.row).toMatchObject({ status: 'succeeded', reason: 'delivered' });
  });

  it('in the middle of a first attempt that fails ends as Cancelled, without another', async () => {
    const held = heldAnswer();
    const delivery = engine.model.add([held.answer]);
    const handle = await engine.dispatch(delivery);
    await held.arrived;
    await cancel(handle, delivery);
    held.give(500);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'CANCELLED' });
    expect(delivery.sentAtMs).toHaveLength(1);
    expect(delivery.row).toMatchObject({ status: 'cancelled', attemptCount: 1 });
  });

  it('in the middle of a later attempt keeps its success', async () => {
    const held = heldAnswer();
    const delivery = await waiting(engine.model.add([500, held.answer]));
    const handle = engine.handle(delivery.id);
    await handle.signal('retryNow');
    await held.arrived;
    await cancel(handle, delivery);
    held.give(204);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.sentAtMs).toHaveLength(2);
  });
});

describe('a row that somebody else closed', () => {
  it('ends the waiting run as Cancelled when its timer fires, though nobody told it', async () => {
    const delivery = await waiting();
    delivery.cancelRow();
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'CANCELLED' });
    expect(delivery.sentAtMs).toHaveLength(1);
  });

  it('as succeeded, before the cancellation arrives, ends Completed', async () => {
    const delivery = await waiting();
    Object.assign(delivery.row, { status: 'succeeded', reason: 'delivered' });
    await engine.handle(delivery.id).signal('cancel');
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { status: 'succeeded' } });
  });
});

describe('retryNow', () => {
  it('during a wait makes the attempt at once', async () => {
    const delivery = await waiting(engine.model.add([500, 200]));
    await engine.handle(delivery.id).signal('retryNow');
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.sentAtMs[1]! - delivery.sentAtMs[0]!).toBeLessThan(20 * second);
    expect(delivery.row).toMatchObject({ attemptCount: 2, round: 1 });
  });

  it('is kept while nothing can be sent', async () => {
    const noSlot = { status: null, errorCode: 'timeout_connect', noSlot: true } as const;
    const delivery = await waiting(engine.model.add([500, noSlot, noSlot, 200]));
    await engine.handle(delivery.id).signal('retryNow');
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.sentAtMs.at(-1)! - delivery.sentAtMs[0]!).toBeLessThan(20 * second);
    expect(delivery.row).toMatchObject({ attemptCount: 2, status: 'succeeded' });
  });

  it('goes on with the schedule where the attempt fails', async () => {
    const delivery = await waiting(engine.model.add([500, 500, 200]));
    await engine.handle(delivery.id).signal('retryNow');
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    const secondWaitMs = delivery.sentAtMs[2]! - delivery.sentAtMs[1]!;
    expect(secondWaitMs).toBeGreaterThanOrEqual(0.8 * 300 * second);
  });

  it.each([
    ['first', [] as number[]],
    ['later', [500]],
  ])('in the middle of a %s attempt that succeeds sends no second request', async (_, before) => {
    const held = heldAnswer();
    const delivery = engine.model.add([...before, held.answer]);
    const handle = await engine.dispatch(delivery);
    if (before.length > 0) {
      await until('it waits', async () => (await state(delivery)).phase === 'waiting');
      await handle.signal('retryNow');
    }
    await held.arrived;
    await handle.signal('retryNow');
    held.give(200);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.sentAtMs).toHaveLength(before.length + 1);
    expect(delivery.row).toMatchObject({ status: 'succeeded', round: 1 });
  });

  it('in the middle of an attempt that fails makes the next one follow at once', async () => {
    const held = heldAnswer();
    const delivery = engine.model.add([held.answer, 200]);
    const handle = await engine.dispatch(delivery);
    await held.arrived;
    await handle.signal('retryNow');
    held.give(500);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.sentAtMs).toHaveLength(2);
    expect(delivery.sentAtMs[1]! - delivery.sentAtMs[0]!).toBeLessThan(20 * second);
  });

  it('does not make the run end before its time when it comes many times', async () => {
    const delivery = await waiting(engine.model.add([500, 500, 500, 200]));
    const handle = engine.handle(delivery.id);
    for (const attempts of [2, 3, 4]) {
      await handle.signal('retryNow');
      await until(`attempt ${attempts}`, async () => delivery.attempts.length === attempts);
    }
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.sentAtMs).toHaveLength(4);
  });
});

describe('the next round', () => {
  it('that is asked for while the run is about to close is made by the same run', async () => {
    const held = heldAnswer();
    const delivery = engine.model.add([held.answer, 200]);
    const handle = await engine.dispatch(delivery);
    const { runId } = await handle.describe();
    await held.arrived;
    // The row closes and the redelivery is accepted before the workflow hears of either.
    delivery.cancelRow();
    await apiRedelivers(delivery);
    held.give(500);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { round: 2, attempts: 2 } });
    expect((await handle.describe()).runId).toBe(runId);
    expect(delivery.attempts.map(({ round }) => round)).toEqual([1, 2]);
  });

  it('that was asked for after a cancellation is not lost with the cancelled run', async () => {
    const held = heldAnswer();
    const delivery = engine.model.add([held.answer, 200]);
    const handle = await engine.dispatch(delivery);
    await held.arrived;
    delivery.cancelRow();
    delivery.openNextRound(await engine.model.nowMs());
    // The dispatcher's order is no promise: the cancellation may come last.
    await engine.gateway.redeliver(delivery.start);
    await handle.cancel();
    held.give(500);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { round: 2 } });
    expect(delivery.row).toMatchObject({ status: 'succeeded', round: 2 });
  });

  it('of a closed run is a new run with a full schedule', async () => {
    const delivery = engine.model.add([410]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'FAILED', failure: 'EndpointGone' });
    delivery.endpoint.status = 'active';
    delivery.answers.push(500, 500, 500, 500, 500, 500, 200);
    await apiRedelivers(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'FAILED', failure: 'DeliveryExhausted' });
    expect(delivery.attempts.map(({ round }) => round)).toEqual([1, 2, 2, 2, 2, 2, 2]);
  });
});

describe('a start of a closed delivery', () => {
  it('by hand redelivers it, with the search attributes of the first run', async () => {
    const delivery = engine.model.add([200, 200]);
    await engine.dispatch(delivery);
    await engine.ending(delivery.id);
    await engine.startByHand(delivery.id);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { round: 2, attempts: 2 } });
    const { events } = await engine.handle(delivery.id).fetchHistory();
    const upsert = (events ?? []).find((event) => event.upsertWorkflowSearchAttributesEventAttributes);
    const fields = upsert?.upsertWorkflowSearchAttributesEventAttributes?.searchAttributes?.indexedFields ?? {};
    const texts = Object.entries(fields).map(([name, { data }]) => [name, JSON.parse(Buffer.from(data!).toString())]);
    expect(Object.fromEntries(texts)).toEqual({
      PosthornTenantId: 'default',
      PosthornEndpointId: delivery.endpointId,
      PosthornEventType: 'invoice.paid',
      PosthornEventId: delivery.eventId,
    });
  });

  it('by hand retries with the rest of a full schedule, and redelivers once only', async () => {
    const delivery = engine.model.add([200, 500, 200]);
    await engine.dispatch(delivery);
    await engine.ending(delivery.id);
    await engine.startByHand(delivery.id);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { round: 2, attempts: 3 } });
  });

  it('by hand redelivers even where the database was away at first', async () => {
    const delivery = engine.model.add([200, 200]);
    await engine.dispatch(delivery);
    await engine.ending(delivery.id);
    delivery.loadFailures = 2;
    await engine.startByHand(delivery.id);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { round: 2 } });
  });

  it('by machine sends nothing', async () => {
    const delivery = engine.model.add([200, 200], { status: 'succeeded', reason: 'delivered', attemptCount: 1 });
    await engine.gateway.startDelivery(delivery.start, 'sweeper', 'again');
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { round: 1, attempts: 1 } });
    expect(delivery.sentAtMs).toEqual([]);
  });
});

describe('a start by hand of a waiting delivery', () => {
  it('resumes its round when it is due', async () => {
    const nowMs = await engine.model.nowMs();
    const delivery = engine.model.add([200], {
      status: 'retrying',
      attemptCount: 3,
      roundAttempts: 3,
      nextAttemptAtMs: nowMs + 600 * second,
    });
    await engine.startByHand(delivery.id);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { round: 1, attempts: 4 } });
    expect(delivery.sentAtMs[0]! - nowMs).toBeGreaterThanOrEqual(600 * second - 100);
  });
});

describe('a start with bad input fails as InvalidInput and sends nothing', () => {
  it('where the workflow’s id is not the delivery’s', async () => {
    const delivery = engine.model.add([200]);
    await engine.startByHand('another-name', { deliveryId: delivery.id });
    expect(await engine.ending('another-name')).toMatchObject({ status: 'FAILED', failure: 'InvalidInput' });
    expect(delivery.sentAtMs).toEqual([]);
  });

  it('where nobody knows the delivery', async () => {
    const id = 'whd_01ARZ3NDEKTSV4RRFFQ69G5FAV';
    await engine.startByHand(id);
    expect(await engine.ending(id)).toMatchObject({ status: 'FAILED', failure: 'InvalidInput' });
  });

  it.each([[null], ['whd_01ARZ3NDEKTSV4RRFFQ69G5FAV'], [{}], [{ deliveryId: 7 }], [{ deliveryId: 'whd_' }], [[1, 2]]])(
    'where it is %j',
    async (input) => {
      const id = `garbage-${JSON.stringify(input)}`;
      await engine.startByHand(id, input);
      expect(await engine.ending(id)).toMatchObject({ status: 'FAILED', failure: 'InvalidInput' });
    },
  );
});

describe('the state query', () => {
  it('answers in each phase', async () => {
    const held = heldAnswer();
    const delivery = await waiting(engine.model.add([{ status: 429, retryAfter: '60' }, held.answer]));
    expect(await state(delivery)).toEqual({
      phase: 'waiting',
      round: 1,
      attempts: 1,
      lastError: 'http_status',
      waitingFor: 'retry_after',
      waitMs: expect.any(Number),
      waitingSince: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    await engine.handle(delivery.id).signal('retryNow');
    await held.arrived;
    expect(await state(delivery)).toMatchObject({ phase: 'attempting', attempts: 1, waitingFor: null, waitMs: null });
    held.give(200);
    await engine.ending(delivery.id);
    expect(await state(delivery)).toMatchObject({ phase: 'closed', attempts: 2, lastError: null });
  });
});

describe('an attempt that was sent but not recorded', () => {
  it('is recorded by `recordAttempt`, tried until it succeeds, and not sent again', async () => {
    const delivery = engine.model.add([200]);
    // The attempt's own tries, then three of recordAttempt's.
    delivery.recordFailures = Number.POSITIVE_INFINITY;
    await engine.dispatch(delivery);
    await until('recordAttempt has failed', async () => delivery.recordings >= 2);
    expect(await state(delivery)).toMatchObject({ phase: 'settling' });
    delivery.recordFailures = 1;
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { attempts: 1 } });
    expect(delivery.recordings).toBeGreaterThanOrEqual(3);
    expect(delivery.sentAtMs).toHaveLength(1);
  });

  it('keeps its Retry-After', async () => {
    const delivery = engine.model.add([{ status: 503, retryAfter: '3600' }, 200]);
    delivery.recordFailures = Number.POSITIVE_INFINITY;
    await engine.dispatch(delivery);
    await until('recordAttempt has failed', async () => delivery.recordings >= 1);
    delivery.recordFailures = 0;
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED' });
    expect(delivery.attempts.map(({ statusCode }) => statusCode)).toEqual([503, 200]);
    expect(delivery.sentAtMs[1]! - delivery.sentAtMs[0]!).toBeGreaterThanOrEqual(3_600 * second);
  });
});

describe('an attempt whose process died', () => {
  it.each(['local', 'ordinary'])(
    'with its %s request out counts as outcome_unknown and spends the attempt',
    async (lane) => {
      const delivery = engine.model.add([200], {}, { quick: lane === 'local' });
      // The local lane's first execution says use_ordinary where the endpoint isn't quick, and must not die.
      delivery.deaths.push(...(lane === 'local' ? [] : [null]), 'before recording');
      await engine.dispatch(delivery);
      expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { attempts: 2 } });
      expect(delivery.attempts.map(({ errorCode }) => errorCode)).toEqual(['outcome_unknown', null]);
      expect(delivery.sentAtMs).toHaveLength(2);
      expect(delivery.sentAtMs[1]! - delivery.sentAtMs[0]!).toBeGreaterThanOrEqual(0.8 * 60 * second);
    },
  );

  it('after recording is not repeated', async () => {
    const delivery = engine.model.add([200]);
    delivery.deaths.push('after recording');
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { attempts: 1 } });
    expect(delivery.sentAtMs).toHaveLength(1);
    expect(delivery.attempts).toHaveLength(1);
  });

  it('after recording a failure waits just as it was recorded', async () => {
    const delivery = engine.model.add([500, 200]);
    delivery.deaths.push('after recording');
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'COMPLETED', result: { attempts: 2 } });
    const waitedMs = delivery.sentAtMs[1]! - delivery.attempts[0]!.recordedAtMs;
    expect(waitedMs).toBeGreaterThanOrEqual(delivery.attempts[0]!.waitMs! - 100);
    expect(waitedMs).toBeLessThan(delivery.attempts[0]!.waitMs! + 10 * second);
  });
});
