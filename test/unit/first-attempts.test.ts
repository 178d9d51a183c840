import { afterEach, expect, it, vi } from 'vitest';
import type { LoadedDelivery } from '../../src/database/attempt-rows.js';
import type { NewDelivery } from '../../src/database/event-store.js';
import {
  ExpectedDeliveries,
  type FreshDelivery,
  keptForMs,
  KnownEndpoints,
  lookForMs,
  thisMoment,
} from '../../src/database/known-endpoints.js';
import type { ExpressLane } from '../../src/express/express-lane.js';
import { FirstAttempts } from '../../src/express/first-attempts.js';
import type { Dispatcher } from '../../src/temporal/dispatcher.js';

afterEach(() => void vi.useRealTimers());

const fresh = (): FreshDelivery => ({
  tenantId: 't',
  endpointId: 'we_1',
  eventId: 'evt_1',
  type: 'a.b',
  leased: true,
  event: { createdAt: new Date(0), apiVersion: null, source: null, subject: null, data: '{"card":4242}' },
  settings: '1/',
  asOf: thisMoment(),
});

const delivery = (changes: Partial<NewDelivery> = {}): NewDelivery => ({
  id: 'whd_1',
  tenantId: 't',
  eventId: 'evt_1',
  endpointId: 'we_1',
  type: 'a.b',
  url: 'https://hooks.example.com/',
  status: 'pending',
  leased: true,
  fresh: fresh(),
  ...changes,
});

it('what waits for its start holds nothing of the event', () => {
  const waiting: unknown[] = [];
  const expected: string[] = [];
  let room = true;
  const attempts = new FirstAttempts(
    { submit: (job: unknown) => room && waiting.push(job) > 0 } as unknown as Dispatcher,
    { leaseHolder: 'me', submit: (start: unknown) => void waiting.push(start) } as unknown as ExpressLane,
    { expect: (id) => void expected.push(id) },
  );
  attempts.begin(delivery());
  attempts.begin(delivery({ id: 'whd_2', leased: false }));
  room = false;
  attempts.begin(delivery({ id: 'whd_3', leased: false }));
  expect(waiting).toHaveLength(2);
  expect(JSON.stringify(waiting)).not.toContain('4242');
  // The sweeper starts the third, at some other time.
  expect(expected).toEqual(['whd_2']);
});

it('what is expected, and what is known of endpoints, is forgotten after a while, used or not', () => {
  vi.useFakeTimers();
  const expected = new ExpectedDeliveries();
  const known = new KnownEndpoints();
  const endpoint = { status: 'active', deleted: false, quick: true } as LoadedDelivery['endpoint'];
  const loaded = { ...fresh(), restsForMs: 0, endpoint, event: { ...fresh().event, typeRules: null } };
  known.remember(
    { delivery: loaded as unknown as LoadedDelivery, settings: '1/', endpointAsks: false, secretsForMs: null },
    thisMoment(),
  );
  for (const id of ['whd_1', 'whd_2']) expected.add(id, fresh());
  expect([expected.take('whd_1'), known.find(fresh())].map((found) => found !== null)).toEqual([true, true]);
  vi.advanceTimersByTime(lookForMs);
  expect(expected.take('whd_2')).toBeNull();
  vi.advanceTimersByTime(keptForMs - lookForMs);
  const internal = known as unknown as { known: { get(key: string): unknown } };
  expect(internal.known.get('we_1/a.b')).toBeUndefined();
});

it('no more is expected than it has room for, and nothing large', () => {
  const expected = new ExpectedDeliveries();
  for (let n = 0; n < 201; n += 1) expected.add(`whd_${n}`, fresh());
  expect([expected.take('whd_0'), expected.take('whd_200')].map((found) => found !== null)).toEqual([false, true]);
  expected.add('large', { ...fresh(), event: { ...fresh().event, data: 'x'.repeat(16 * 1024 + 1) } });
  expect(expected.take('large')).toBeNull();
});
