import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HeldAnswers } from '../../support/held-answers.js';
import { RecordingReceiver, until } from '../../support/posthorn.js';
import { about, Attempts } from './harness.js';

let attempts: Attempts;
let receiver: RecordingReceiver;
beforeAll(async () => {
  attempts = await Attempts.start();
  receiver = await RecordingReceiver.start();
});
beforeEach(() => {
  receiver.answer = (_, reply) => void reply.writeHead(200).end('ok');
});
afterAll(async () => {
  await attempts.stop();
  await receiver.stop();
});

const says = (status: number): void => {
  receiver.answer = (_, reply) => void reply.writeHead(status).end();
};

const by = { keyId: 'key_1', reason: null };

describe('an attempt that is executed twice', () => {
  it('at the same time in one process is one request, with one outcome', async () => {
    const held = new HeldAnswers();
    receiver.answer = held.answer;
    const delivery = await attempts.publish(receiver.url);
    const first = attempts.attempt(delivery, {}, 'local');
    await held.arrived();
    const second = attempts.attempt(delivery, {}, 'local');
    const settled = attempts.runner.settle(attempts.input(delivery));
    held.release(200);
    const outcome = await first;
    expect(await second).toEqual(outcome);
    expect(await settled).toEqual(outcome);
    expect(receiver.of(delivery.id)).toHaveLength(1);
  });

  it.each([200, 500])('after a restart returns the recorded outcome of a %i, and sends nothing', async (status) => {
    says(status);
    const delivery = await attempts.publish(receiver.url);
    const outcome = await attempts.attempt(delivery);
    const again = await attempts.newRunner().run(attempts.input(delivery), 'ordinary');
    // The wait goes on meanwhile.
    expect({ ...again, waitMs: 0 }).toEqual({ ...outcome, waitMs: 0 });
    expect(receiver.of(delivery.id)).toHaveLength(1);
    expect(await attempts.recorded(delivery)).toHaveLength(1);
  });

  it('in two processes at once is recorded once', async () => {
    const held = new HeldAnswers();
    receiver.answer = held.answer;
    const delivery = await attempts.publish(receiver.url);
    const runs = [attempts.runner, attempts.newRunner()].map((runner) =>
      runner.run(attempts.input(delivery), 'ordinary'),
    );
    await held.arrived(2);
    held.release(500);
    const [one, other] = await Promise.all(runs);
    expect(one).toMatchObject({ kind: 'failed', number: 1 });
    expect(other).toMatchObject({ kind: 'failed', number: 1 });
    expect(await attempts.recorded(delivery)).toHaveLength(1);
    expect(await attempts.row(delivery)).toMatchObject({ attempt_count: 1, round_attempts: 1 });
  });

  it('under another run id is another attempt', async () => {
    says(500);
    const delivery = await attempts.publish(receiver.url);
    await attempts.attempt(delivery);
    await attempts.attempt(delivery, { runId: 'run-2', force: true });
    expect(await attempts.recorded(delivery)).toMatchObject([{ number: 1 }, { number: 2 }]);
  });

  it('is recorded once by the store, whatever the second one says', async () => {
    const delivery = await attempts.publish(receiver.url);
    expect(await attempts.store.record(attempts.failure(delivery))).toMatchObject({ status: 'retrying', number: 1 });
    expect(await attempts.store.record(attempts.record(delivery))).toBeNull();
    expect(await attempts.row(delivery)).toMatchObject({ status: 'retrying', attempt_count: 1 });
  });
});

describe('a row that changes while the request is in flight', () => {
  it('cancelled and delivered: it has succeeded', async () => {
    const held = new HeldAnswers();
    receiver.answer = held.answer;
    const delivery = await attempts.publish(receiver.url);
    const running = attempts.attempt(delivery);
    await held.arrived();
    await attempts.deliveries.cancel('default', delivery.id, by);
    held.release(200);
    expect(await running).toMatchObject({ kind: 'closed', status: 'succeeded', reason: 'delivered' });
    expect(await attempts.row(delivery)).toMatchObject({ status: 'succeeded', attempt_count: 1 });
  });

  it('cancelled and failed: it stays cancelled, with the attempt recorded and without a letter', async () => {
    const held = new HeldAnswers();
    receiver.answer = held.answer;
    const delivery = await attempts.publish(receiver.url);
    const running = attempts.attempt(delivery);
    await held.arrived();
    await attempts.deliveries.cancel('default', delivery.id, by);
    held.release(500);
    expect(await running).toMatchObject({ kind: 'closed', status: 'cancelled', reason: 'cancelled_by_request' });
    expect(await attempts.row(delivery)).toMatchObject({
      status: 'cancelled',
      next_attempt_at: null,
      sweep_after: null,
    });
    expect(await attempts.recorded(delivery)).toHaveLength(1);
    expect(await attempts.lettersOf(delivery)).toEqual([]);
  });

  it('opened anew by a redelivery: the old round’s failure does not touch the new one', async () => {
    const held = new HeldAnswers();
    receiver.answer = held.answer;
    const delivery = await attempts.publish(receiver.url, { retryWaitsMs: [] });
    const running = attempts.attempt(delivery);
    await held.arrived();
    await attempts.deliveries.cancel('default', delivery.id, by);
    await attempts.deliveries.redeliver('default', delivery.id, by);
    held.release(500);
    await running;
    expect(await attempts.row(delivery)).toMatchObject({
      status: 'pending',
      round: 2,
      round_attempts: 0,
      wake_requested: true,
      attempt_count: 1,
    });
    expect(await attempts.lettersOf(delivery)).toEqual([]);
    expect(await attempts.recorded(delivery)).toMatchObject([{ round: 1 }]);
  });
});

describe('an attempt at a row that is not waiting', () => {
  it.each(['succeeded', 'failed', 'cancelled'])('%s: nothing is sent when a machine started it', async (status) => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.sql('update deliveries set status = $2, next_attempt_at = null where id = $1', [
      delivery.id,
      status,
    ]);
    expect(await attempts.attempt(delivery, { force: true })).toMatchObject({ kind: 'closed', status });
    expect(receiver.of(delivery.id)).toHaveLength(0);
  });

  it.each(['redeliver', 'reset'] as const)('closed: an intent to %s opens the next round, once', async (intent) => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.attempt(delivery);
    const again = { runId: 'run-2', intent };
    expect(await attempts.attempt(delivery, again)).toMatchObject({ kind: 'closed', round: 2, attemptCount: 2 });
    expect(await attempts.attempt(delivery, again)).toMatchObject({ kind: 'closed', round: 2, attemptCount: 2 });
    expect(receiver.of(delivery.id)).toHaveLength(2);
  });

  it('closed: a reset run that has made an attempt makes no other', async () => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.attempt(delivery, { runId: 'run-2', intent: 'reset' });
    expect(await attempts.attempt(delivery, { runId: 'run-2', sequence: 2, intent: 'reset' })).toMatchObject({
      kind: 'closed',
      round: 1,
    });
    expect(receiver.of(delivery.id)).toHaveLength(1);
  });

  it('of a deleted endpoint: it is cancelled by the load', async () => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.endpoints.delete('default', delivery.endpointId);
    expect(await attempts.attempt(delivery)).toMatchObject({
      kind: 'closed',
      status: 'cancelled',
      reason: 'endpoint_deleted',
    });
    expect(receiver.of(delivery.id)).toHaveLength(0);
    expect(await attempts.row(delivery)).toMatchObject({ status: 'cancelled', sweep_after: null });
  });

  it.each([
    ['paused', 'held', 'endpoint_paused'],
    ['pending_verification', 'held', 'endpoint_unverified'],
    ['disabled', 'failed', 'endpoint_disabled'],
  ])('of a %s endpoint: it is %s', async (endpointStatus, status, reason) => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.sql('update endpoints set status = $2 where id = $1', [delivery.endpointId, endpointStatus]);
    expect(await attempts.attempt(delivery)).toMatchObject({ kind: status === 'held' ? 'held' : 'closed', reason });
    expect(await attempts.row(delivery)).toMatchObject({ status, reason });
    expect(receiver.of(delivery.id)).toHaveLength(0);
    expect(await attempts.lettersOf(delivery)).toHaveLength(status === 'failed' ? 1 : 0);
  });

  it('that is not due: nothing is sent or spent, unless it is forced', async () => {
    says(500);
    const delivery = await attempts.publish(receiver.url);
    await attempts.attempt(delivery);
    const early = await attempts.attempt(delivery, { sequence: 2 });
    expect(early).toMatchObject({ kind: 'not_due', reason: 'attempt_failed', next: { number: 2 } });
    expect((early as { waitMs: number }).waitMs).toBeGreaterThan(50_000);
    expect(receiver.of(delivery.id)).toHaveLength(1);
    await attempts.attempt(delivery, { sequence: 2, force: true });
    expect(receiver.of(delivery.id)).toHaveLength(2);
  });

  it('of nobody: there is no such delivery', async () => {
    expect(await attempts.attempt({ id: 'whd_01ARZ3NDEKTSV4RRFFQ69G5FAV' })).toEqual({ kind: 'unknown_delivery' });
  });
});

describe('the local lane', () => {
  it('is for quick endpoints: a slow one’s attempt is to be ordinary', async () => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.sql('update endpoints set quick = false where id = $1', [delivery.endpointId]);
    expect(await attempts.attempt(delivery, {}, 'local')).toMatchObject({ kind: 'use_ordinary', next: { number: 1 } });
    expect(receiver.of(delivery.id)).toHaveLength(0);
  });
});

describe('an attempt whose process died', () => {
  it('is outcome_unknown once, and spent', async () => {
    const delivery = await attempts.publish(receiver.url);
    const input = attempts.input(delivery);
    const first = await attempts.newRunner().settle(input);
    expect(first).toMatchObject({ kind: 'failed', number: 1, error: 'outcome_unknown', waitMs: about(60_000) });
    expect(await attempts.newRunner().settle(input)).toMatchObject({ kind: 'failed', number: 1 });
    expect(await attempts.recorded(delivery)).toMatchObject([{ error_code: 'outcome_unknown', status_code: null }]);
  });

  it('after it was recorded is what was recorded', async () => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.attempt(delivery);
    expect(await attempts.newRunner().settle(attempts.input(delivery))).toMatchObject({ status: 'succeeded' });
    expect(await attempts.recorded(delivery)).toHaveLength(1);
  });

  it.each([
    ['delivered', 200, 'succeeded'],
    ['failed', 500, 'retrying'],
  ])('but which was only out of reach, and %s, takes the place of outcome_unknown', async (_, status, expected) => {
    const held = new HeldAnswers();
    receiver.answer = held.answer;
    const delivery = await attempts.publish(receiver.url);
    const running = attempts.attempt(delivery);
    await held.arrived();
    // Another process takes this one for dead.
    expect(await attempts.newRunner().settle(attempts.input(delivery))).toMatchObject({ error: 'outcome_unknown' });
    held.release(status);
    expect(await running).toMatchObject(
      expected === 'succeeded' ? { status: 'succeeded' } : { kind: 'failed', statusCode: 500 },
    );
    expect(await attempts.recorded(delivery)).toMatchObject([{ number: 1, status_code: status }]);
    expect((await attempts.row(delivery)).status).toBe(expected);
    // No second request follows a success: the row is closed when the workflow looks again.
    if (expected === 'succeeded') {
      expect(await attempts.attempt(delivery, { sequence: 2, force: true })).toMatchObject({ kind: 'closed' });
      expect(receiver.of(delivery.id)).toHaveLength(1);
    }
  });

  it('of a closed row spends nothing', async () => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.deliveries.cancel('default', delivery.id, by);
    expect(await attempts.newRunner().settle(attempts.input(delivery))).toMatchObject({ status: 'cancelled' });
    expect(await attempts.recorded(delivery)).toEqual([]);
  });
});

describe('the endpoint’s row', () => {
  it('is written once for many successes within ten seconds', async () => {
    const endpointId = await attempts.createEndpoint(receiver.url);
    const deliveries = await attempts.publishTo(endpointId, 20);
    await attempts.attempt(deliveries[0]!);
    const { written_by: writer } = await attempts.endpoint(endpointId);
    await Promise.all(deliveries.slice(1).map((delivery) => attempts.attempt(delivery)));
    expect((await attempts.endpoint(endpointId)).written_by).toBe(writer);
    await attempts.sql(`update endpoints set last_success_at = now() - interval '11 s' where id = $1`, [endpointId]);
    const [late] = await attempts.publishTo(endpointId);
    await attempts.attempt(late!);
    const { last_success_at: seen } = await attempts.endpoint(endpointId);
    expect(Date.now() - (seen as Date).getTime()).toBeLessThan(5_000);
  });

  it('raises its health version with the first failure, the recovery, and nothing between', async () => {
    const endpointId = await attempts.createEndpoint(receiver.url);
    const deliveries = await attempts.publishTo(endpointId, 6);
    const version = async (): Promise<number> => Number((await attempts.endpoint(endpointId)).health_version);
    const versions: number[] = [];
    for (const [index, status] of [200, 200, 500, 500, 200, 200].entries()) {
      says(status);
      await attempts.attempt(deliveries[index]!);
      versions.push(await version());
    }
    // The first is the endpoint's creation.
    expect(versions).toEqual([1, 1, 2, 2, 3, 3]);
  });

  it('is failing only since an attempt that began after its last success', async () => {
    const [early, success, late] = await attempts.publishTo(await attempts.createEndpoint(receiver.url), 3);
    const longAgo = new Date(Date.now() - 60_000);
    await attempts.store.record(attempts.record(success!));
    await attempts.store.record(attempts.failure(early!, { startedAt: longAgo }));
    expect(await attempts.endpoint(early!.endpointId)).toMatchObject({ failing_since: null, health_version: '1' });
    const startedAt = new Date(Date.now() + 1_000);
    await attempts.store.record(attempts.failure(late!, { startedAt }));
    const endpoint = await attempts.endpoint(early!.endpointId);
    expect(endpoint.failing_since).toEqual(startedAt);
    expect(endpoint.health_version).toBe('2');
  });

  it('keeps its rest when a success comes in that began before', async () => {
    const [early, busy, late] = await attempts.publishTo(await attempts.createEndpoint(receiver.url), 3);
    const longAgo = new Date(Date.now() - 60_000);
    await attempts.store.record(attempts.failure(busy!, { restMs: 3_600_000 }));
    await attempts.store.record(attempts.record(early!, { startedAt: longAgo }));
    expect((await attempts.endpoint(early!.endpointId)).not_before).not.toBeNull();
    await attempts.store.record(attempts.record(late!, { startedAt: new Date(Date.now() + 1_000) }));
    expect((await attempts.endpoint(early!.endpointId)).not_before).toBeNull();
  });

  it('turns slow with a slow answer, and quick with a quick one', async () => {
    const [slow, quick] = await attempts.publishTo(await attempts.createEndpoint(receiver.url), 2);
    await attempts.store.record(attempts.record(slow!, { durationMs: 1_500 }));
    expect((await attempts.endpoint(slow!.endpointId)).quick).toBe(false);
    await attempts.sql(`update endpoints set last_success_at = now() - interval '11 s' where id = $1`, [
      slow!.endpointId,
    ]);
    await attempts.store.record(attempts.record(quick!, { durationMs: 15 }));
    expect((await attempts.endpoint(slow!.endpointId)).quick).toBe(true);
  });

  it('is left alone by a failure that is no fault of the endpoint', async () => {
    const endpointId = await attempts.createEndpoint(receiver.url);
    const deliveries = await attempts.publishTo(endpointId, 4);
    const before = await attempts.endpoint(endpointId);
    for (const delivery of deliveries) {
      await attempts.store.record(attempts.failure(delivery, { errorCode: 'config_invalid', blamesEndpoint: false }));
    }
    expect(await attempts.endpoint(endpointId)).toEqual(before);
    expect(await attempts.row(deliveries[3]!)).toMatchObject({ status: 'retrying', attempt_count: 1 });
  });

  it('hot: 200 records at once, with a 410 among them, end without a deadlock and with each attempt recorded', async () => {
    const endpointId = await attempts.createEndpoint(receiver.url);
    const deliveries = await attempts.publishTo(endpointId, 200);
    const spare = await attempts.publishTo(endpointId, 50);
    const results = await Promise.all(
      deliveries.map(async (delivery, index) => {
        if (index === 100 || index === 140) {
          const result = await attempts.store.record(attempts.failure(delivery, { statusCode: 410, gone: true }));
          await attempts.waiting.closeAllOf(endpointId);
          return result;
        }
        return attempts.store.record(index % 3 === 0 ? attempts.failure(delivery) : attempts.record(delivery));
      }),
    );
    expect(results.every((result) => result !== null)).toBe(true);
    const [counted] = await attempts.sql(
      `select count(*)::int as attempts from attempts a join deliveries d on d.id = a.delivery_id where d.endpoint_id = $1`,
      [endpointId],
    );
    expect(counted).toEqual({ attempts: 200 });
    for (const delivery of spare) expect(await attempts.row(delivery)).toMatchObject({ status: 'failed' });
    // Also the failures that were recorded after the endpoint had gone are closed by the next look at them.
    const open = await attempts.sql<{ id: string }>(
      `select id from deliveries where endpoint_id = $1 and status in ('pending', 'retrying')`,
      [endpointId],
    );
    for (const delivery of open) await attempts.attempt(delivery, { runId: 'run-2', force: true });
    const [left] = await attempts.sql(
      `select count(*)::int as open from deliveries where endpoint_id = $1 and status in ('pending', 'retrying')`,
      [endpointId],
    );
    expect(left).toEqual({ open: 0 });
  });
});

describe('a message with NUL', () => {
  it('is recorded', async () => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.store.record(
      attempts.failure(delivery, {
        errorMessage: 'broken \u0000 text \ud800',
        responseHeaders: [['x-nul', 'a\u0000b\ud800']],
        responseBody: Buffer.from([0, 255, 0]),
      }),
    );
    await until('it is there', async () => (await attempts.recorded(delivery)).length === 1);
    expect((await attempts.row(delivery)).last_error).toContain('broken');
  });
});
