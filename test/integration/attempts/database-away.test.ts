import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { AttemptOutcome, SentAttempt } from '../../../activities/contracts/delivery-activities.js';
import { createTestDatabase } from '../../support/engines.js';
import { HeldAnswers } from '../../support/held-answers.js';
import { RecordingReceiver, until } from '../../support/posthorn.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { about, Attempts, type StoredDelivery } from './harness.js';

let proxy: TcpProxy;
let attempts: Attempts;
let receiver: RecordingReceiver;
beforeAll(async () => {
  const url = new URL(await createTestDatabase(inject('postgresUrl')));
  proxy = await TcpProxy.start(`${url.hostname}:${url.port}`);
  url.host = proxy.address;
  attempts = await Attempts.start({ databaseUrl: url.href });
  receiver = await RecordingReceiver.start();
});
let held: HeldAnswers;
beforeEach(() => {
  held = new HeldAnswers();
  receiver.answer = held.answer;
});
afterEach(() => proxy.restore());
afterAll(async () => {
  await attempts.stop();
  await proxy.stop();
  await receiver.stop();
});

/** An attempt whose answer came while the database was away. */
async function unrecorded(
  answer: number,
  headers: Record<string, string> = {},
): Promise<{ delivery: StoredDelivery; sent: SentAttempt; tookMs: number }> {
  const delivery = await attempts.publish(receiver.url);
  let say!: () => void;
  const arrived = new Promise<void>((resolve) => {
    receiver.answer = (_, reply) => {
      say = () => void reply.writeHead(answer, headers).end('a body that is given up');
      resolve();
    };
  });
  const running = attempts.attempt(delivery);
  await arrived;
  proxy.cut();
  const answeredAt = Date.now();
  say();
  const outcome = await running;
  if (outcome.kind !== 'unrecorded') throw new Error(`the attempt is ${outcome.kind}`);
  return { delivery, sent: outcome.sent, tookMs: Date.now() - answeredAt };
}

describe('the database gone between answer and recording', () => {
  it('is waited for for three seconds, then the outcome comes back without the body', async () => {
    const { delivery, sent, tookMs } = await unrecorded(200);
    expect(tookMs).toBeGreaterThan(2_500);
    expect(tookMs).toBeLessThan(4_500);
    expect(sent).toMatchObject({ round: 1, statusCode: 200, errorCode: null, retryAfterMs: null, resent: false });
    expect(JSON.stringify(sent)).not.toContain('given up');
    await expect(attempts.newRunner().recordSent({ ...attempts.input(delivery), sent })).rejects.toThrow();
    proxy.restore();
    expect(await recordSent(delivery, sent)).toMatchObject({ kind: 'closed', status: 'succeeded', attemptCount: 1 });
    expect(receiver.of(delivery.id)).toHaveLength(1);
    expect(await attempts.recorded(delivery)).toMatchObject([{ status_code: 200, outcome: 'delivered' }]);
  });

  it('keeps what a failure asked for, and is recorded once', async () => {
    const { delivery, sent } = await unrecorded(503, { 'Retry-After': '600' });
    proxy.restore();
    const outcome = await recordSent(delivery, sent);
    expect(outcome).toMatchObject({ kind: 'failed', number: 1, reason: 'retry_after', waitMs: about(600_000) });
    const again = await recordSent(delivery, sent);
    expect(again).toMatchObject({ kind: 'failed', number: 1 });
    expect(await attempts.recorded(delivery)).toHaveLength(1);
    expect((await attempts.endpoint(delivery.endpointId)).not_before).not.toBeNull();
  });

  it('a 410 is not forgotten', async () => {
    const { delivery, sent } = await unrecorded(410);
    proxy.restore();
    expect(await recordSent(delivery, sent)).toMatchObject({ kind: 'closed', reason: 'endpoint_gone' });
    expect(await attempts.endpoint(delivery.endpointId)).toMatchObject({ status: 'disabled', status_reason: 'gone' });
  });

  it('but back within the three seconds, is recorded by the attempt itself', async () => {
    const delivery = await attempts.publish(receiver.url);
    const running = attempts.attempt(delivery);
    await held.arrived();
    proxy.cut();
    held.release(200);
    await until('a record has failed', async () =>
      attempts.sql('select 1').then(
        () => false,
        () => true,
      ),
    );
    proxy.restore();
    expect(await running).toMatchObject({ kind: 'closed', status: 'succeeded' });
    expect(await attempts.recorded(delivery)).toHaveLength(1);
  });
});

describe('the database gone before the load', () => {
  it('nothing is sent and nothing is spent', async () => {
    const delivery = await attempts.publish(receiver.url);
    proxy.cut();
    expect(await attempts.attempt(delivery)).toEqual({ kind: 'not_sent', cause: 'load_failed' });
    expect(receiver.of(delivery.id)).toHaveLength(0);
    proxy.restore();
    const running = attempts.attempt(delivery);
    await held.arrived();
    held.release(200);
    expect(await running).toMatchObject({ kind: 'closed', status: 'succeeded', attemptCount: 1 });
  });
});

function recordSent(delivery: StoredDelivery, sent: SentAttempt): Promise<AttemptOutcome> {
  return until('it is recorded', () => attempts.newRunner().recordSent({ ...attempts.input(delivery), sent }));
}
