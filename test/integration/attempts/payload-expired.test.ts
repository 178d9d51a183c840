import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingReceiver } from '../../support/posthorn.js';
import { Attempts, type StoredDelivery } from './harness.js';

let attempts: Attempts;
let receiver: RecordingReceiver;

beforeAll(async () => {
  attempts = await Attempts.start();
  receiver = await RecordingReceiver.start();
});
afterAll(async () => {
  await receiver.stop();
  await attempts.db.destroy();
});

const purgePayload = (delivery: StoredDelivery) =>
  attempts.sql('update events set data = null, payload_purged_at = now() where id = $1', [delivery.eventId]);

describe('a delivery whose payload has gone', () => {
  it('ends as payload_expired with a letter when it is started again, and nothing is sent', async () => {
    const delivery = await attempts.publish(receiver.url);
    expect(await attempts.attempt(delivery)).toMatchObject({ kind: 'closed', status: 'succeeded' });
    await purgePayload(delivery);
    const outcome = await attempts.attempt(delivery, { runId: 'by-hand', intent: 'redeliver' });
    expect(outcome).toMatchObject({
      kind: 'closed',
      status: 'failed',
      reason: 'payload_expired',
      round: 2,
      attemptCount: 1,
    });
    expect(await attempts.row(delivery)).toMatchObject({
      status: 'failed',
      reason: 'payload_expired',
      next_attempt_at: null,
      sweep_after: null,
    });
    expect(
      await attempts.sql('select round, reason, resolved_at from dead_letters where delivery_id = $1', [delivery.id]),
    ).toEqual([{ round: 2, reason: 'payload_expired', resolved_at: null }]);
    expect(attempts.told.letters).toContain(delivery.endpointId);
    expect(receiver.of(delivery.id)).toHaveLength(1);
  });

  it('ends so in the first attempt too, without spending one', async () => {
    const delivery = await attempts.publish(receiver.url);
    await purgePayload(delivery);
    expect(await attempts.attempt(delivery, {}, 'local')).toMatchObject({
      kind: 'closed',
      reason: 'payload_expired',
      attemptCount: 0,
    });
    expect(receiver.of(delivery.id)).toHaveLength(0);
  });

  it('is not opened by a redelivery', async () => {
    const delivery = await attempts.publish(receiver.url);
    await attempts.attempt(delivery);
    await purgePayload(delivery);
    const result = await attempts.deliveries.redeliver('default', delivery.id, { keyId: 'key_1', reason: null });
    expect(result).toEqual({ kind: 'payload_expired' });
    expect(await attempts.row(delivery)).toMatchObject({ status: 'succeeded', round: 1 });
  });
});
