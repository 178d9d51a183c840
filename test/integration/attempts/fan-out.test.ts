import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '../../../src/database/data-source.js';
import { EventStore, type NewEvent } from '../../../src/database/event-store.js';
import type { HotStatement } from '../../../src/database/hot-statements.js';
import { eventFilterToLike } from '../../../src/domain/event-type.js';
import { Attempts, newEvent } from './harness.js';

let attempts: Attempts;
beforeAll(async () => {
  attempts = await Attempts.start();
});
afterAll(() => attempts.stop());

async function endpointFor(type: string, filter: object | null = null): Promise<string> {
  const id = await attempts.createEndpoint('https://hooks.example.com/in');
  await attempts.sql('update endpoints set event_likes = $2, filter = $3 where id = $1', [
    id,
    [eventFilterToLike(type)],
    filter && JSON.stringify(filter),
  ]);
  return id;
}

/** A store that notes its statements, and does something after the first of them. */
function storeThat(afterFirst: () => Promise<void> = async () => undefined): {
  store: EventStore;
  statements: string[];
} {
  const statements: string[] = [];
  const run = async <Row>(statement: HotStatement, values: unknown[]): Promise<Row[]> => {
    statements.push(statement.name);
    const rows = await attempts.db.hot.run<Row>(statement, values);
    if (statements.length === 1) await afterFirst();
    return rows;
  };
  const db = { hot: { run } } as unknown as Database;
  return { store: new EventStore(db, { unverifiedEvents: 'hold' }), statements };
}

async function publish(store: EventStore, events: readonly NewEvent[]) {
  const results = await store.publish(events);
  return results.map((result) => {
    if (result.kind !== 'accepted') throw new Error(`not accepted: ${result.kind}`);
    return result.deliveries;
  });
}

const rowsOf = (eventId: string) =>
  attempts.sql<{ id: string; endpoint_id: string; status: string }>(
    'select id, endpoint_id, status from deliveries where event_id = $1 order by endpoint_id',
    [eventId],
  );

it('takes one round trip where an event has few endpoints, or none', async () => {
  const endpoint = await endpointFor('few.*');
  const { store, statements } = storeThat();
  const [wanted, unwanted] = await publish(store, [newEvent('few.wanted'), newEvent('nobody.wants')]);
  expect(wanted?.map(({ endpointId }) => endpointId)).toEqual([endpoint]);
  expect(unwanted).toEqual([]);
  expect(statements).toEqual(['publish_events']);
});

it('reaches every endpoint where there are more than it had ids for, and has enough the next time', async () => {
  const endpoints = await Promise.all(Array.from({ length: 40 }, () => endpointFor('many.*')));
  const { store, statements } = storeThat();
  for (const trips of [2, 1]) {
    statements.length = 0;
    const event = newEvent('many.wanted');
    const [deliveries] = await publish(store, [event]);
    expect(statements).toHaveLength(trips);
    const rows = await rowsOf(event.id);
    expect(rows.map(({ endpoint_id: id }) => id)).toEqual([...endpoints].sort());
    expect(rows.map(({ id }) => id).sort()).toEqual(deliveries!.map(({ id }) => id).sort());
    expect(new Set(rows.map(({ id }) => id)).size).toBe(40);
  }
});

it('forgets an event with many endpoints again', async () => {
  await Promise.all(Array.from({ length: 40 }, () => endpointFor('seldom.*')));
  const { store, statements } = storeThat();
  await publish(store, [newEvent('seldom.wanted')]);
  for (let count = 0; count < 300; count += 1) await publish(store, [newEvent('nobody.wants')]);
  statements.length = 0;
  await publish(store, [newEvent('seldom.wanted')]);
  expect(statements).toHaveLength(2);
});

it('asks content filters between two round trips, and obeys what was decided about an endpoint meanwhile', async () => {
  const [filtered, paused] = [await endpointFor('asked.*', { n: 1 }), await endpointFor('asked.*')];
  let late = '';
  const { store, statements } = storeThat(async () => {
    await attempts.sql(`update endpoints set status = 'paused' where id = $1`, [paused]);
    late = await endpointFor('asked.*');
  });
  const [yes, no] = [newEvent('asked.yes', { data: '{"n":1}' }), newEvent('asked.no', { data: '{"n":2}' })];
  const [first, second] = await publish(store, [yes, no]);
  expect(statements).toHaveLength(2);
  expect(Object.fromEntries(first!.map(({ endpointId, status }) => [endpointId, status]))).toEqual({
    [filtered]: 'pending',
    [paused]: 'held',
  });
  expect(second!.map(({ endpointId, status }) => [endpointId, status])).toEqual([[paused, 'held']]);
  // It came after the event: what was chosen is what gets it.
  expect(await rowsOf(yes.id)).not.toContainEqual(expect.objectContaining({ endpoint_id: late }));
});
