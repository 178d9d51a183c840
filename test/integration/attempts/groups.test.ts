import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NewEvent } from '../../../src/database/event-store.js';
import { newId } from '../../../src/security/new-id.js';
import { Attempts, newEvent } from './harness.js';

let attempts: Attempts;
beforeAll(async () => {
  attempts = await Attempts.start();
});
afterAll(() => attempts.stop());

const groupEvent = (changes: Partial<NewEvent>): NewEvent =>
  newEvent('group.published', { bodyHash: Buffer.from('hash'), ...changes });

const fulfilled = (results: readonly PromiseSettledResult<unknown>[]): boolean[] =>
  results.map(({ status }) => status === 'fulfilled');

describe('records of one statement', () => {
  it('are kept but for a bad one, which fails alone', async () => {
    const endpointId = await attempts.createEndpoint('https://hooks.example.com/in');
    const deliveries = await attempts.publishTo(endpointId, 40);
    const [known, ...fresh] = deliveries;
    const taken = attempts.record(known!);
    await attempts.store.record(taken);
    // The same primary key as another attempt's: no statement that holds it can succeed.
    const records = fresh.map((delivery, index) => attempts.record(delivery, index === 17 ? { id: taken.id } : {}));
    const results = await Promise.allSettled(records.map((record) => attempts.store.record(record)));
    expect(fulfilled(results)).toEqual(records.map((_, index) => index !== 17));
    for (const [index, delivery] of fresh.entries()) {
      expect((await attempts.row(delivery)).status).toBe(index === 17 ? 'pending' : 'succeeded');
      expect(await attempts.recorded(delivery)).toHaveLength(index === 17 ? 0 : 1);
    }
  });

  it('of one delivery take turns, and each counts', async () => {
    const [delivery] = await attempts.publishTo(await attempts.createEndpoint('https://hooks.example.com/in'));
    const runs = ['run-1', 'run-2', 'run-3'];
    const results = await Promise.all(
      runs.map((runId) => attempts.store.record(attempts.record(delivery!, { runId }))),
    );
    expect(results.map((result) => result?.number).sort((a, b) => a! - b!)).toEqual([1, 2, 3]);
    expect(await attempts.recorded(delivery!)).toHaveLength(3);
  });

  it('of several endpoints leave each its own health', async () => {
    const [slow, recovered, quick] = await Promise.all(
      Array.from({ length: 3 }, () => attempts.createEndpoint('https://hooks.example.com/in')),
    );
    const [first] = await attempts.publishTo(recovered!);
    await attempts.store.record(attempts.failure(first!, { startedAt: new Date(Date.now() - 60_000) }));
    const deliveries = await Promise.all([slow!, recovered!, quick!].map((id) => attempts.publishTo(id, 2)));
    const versions = async () =>
      Promise.all([slow!, recovered!, quick!].map(async (id) => Number((await attempts.endpoint(id)).health_version)));
    const before = await versions();
    await Promise.all(
      deliveries
        .flat()
        .map((delivery) =>
          attempts.store.record(attempts.record(delivery, { durationMs: delivery.endpointId === slow ? 2_000 : 10 })),
        ),
    );
    expect(await versions()).toEqual([before[0]!, before[1]! + 1, before[2]!]);
    expect(await attempts.endpoint(slow!)).toMatchObject({ quick: false, failing_since: null });
    expect(await attempts.endpoint(recovered!)).toMatchObject({ quick: true, failing_since: null, failure_streak: 0 });
    expect(await attempts.endpoint(quick!)).toMatchObject({ quick: true, last_success_at: expect.any(Date) });
  });
});

describe('publications of one statement', () => {
  it('are stored but for a bad one, which fails alone', async () => {
    // No time that Postgres knows: what the API refuses, given by hand.
    const events = Array.from({ length: 20 }, (_, index) =>
      groupEvent({ createdAt: index === 7 ? 'no time at all' : null }),
    );
    const results = await Promise.allSettled(events.map((one) => attempts.events.publish([one])));
    expect(fulfilled(results)).toEqual(events.map((_, index) => index !== 7));
    const stored = await attempts.sql<{ id: string }>('select id from events where id = any($1)', [
      events.map(({ id }) => id),
    ]);
    expect(stored).toHaveLength(19);
  });

  it('with one event id accept one and answer the others with it, or with the conflict', async () => {
    const id = newId('evt_');
    const results = await Promise.all(
      ['same', 'same', 'other'].map((hash) =>
        attempts.events.publish([groupEvent({ id, bodyHash: Buffer.from(hash) })]),
      ),
    );
    expect(results.flat().map(({ kind }) => kind)).toEqual(['accepted', 'repeated', 'id_conflict']);
  });
});
