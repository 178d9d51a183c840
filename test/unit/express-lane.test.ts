import { expect, it } from 'vitest';
import { type FreshDelivery, thisMoment } from '../../src/database/known-endpoints.js';
import type { LeaseStore } from '../../src/database/lease-store.js';
import { ExpressLane } from '../../src/express/express-lane.js';
import { createLogger } from '../../src/telemetry/logger.js';
import { until } from '../support/posthorn.js';

it('gives stray leases back together, so that no number of them delays the renewal of the others', async () => {
  const strays = Array.from({ length: 1_000 }, (_, n) => `whd_${n}`);
  const asked: string[] = [];
  let renewals = 0;
  let allAsked!: () => void;
  const all = new Promise<void>((resolve) => (allAsked = resolve));
  const leases = {
    renew: async () => void (renewals += 1),
    overdue: async () => strays.filter((id) => !asked.includes(id)),
    // As by one statement: none is done before all are asked for.
    giveBack: (_: string, id: string) => {
      if (asked.push(id) === strays.length) allAsked();
      return all;
    },
    forget: async () => undefined,
  } as unknown as LeaseStore;
  const lane = new ExpressLane({
    holder: 'express/lse_1',
    attempts: { run: () => new Promise(() => undefined), recordSent: () => new Promise(() => undefined) },
    leases,
    limits: { waiting: 10, atOnce: 2, atOncePerEndpoint: 2 },
    dispatch: () => undefined,
    log: createLogger('silent', 'stderr'),
  });
  lane.start();
  await until('it has renewed after them', async () => renewals >= 3 && asked.length === strays.length, 5_000);
  await lane.stop();
});

it('keeps in memory what waits, up to a bound, and without the request that it came in', async () => {
  const seen: (FreshDelivery | null)[] = [];
  const ends: (() => void)[] = [];
  const lane = new ExpressLane({
    holder: 'express/lse_1',
    attempts: {
      run: async (_input, _lane, fresh) => {
        seen.push(fresh);
        await new Promise<void>((resolve) => ends.push(resolve));
        return { kind: 'unknown_delivery' };
      },
      recordSent: () => new Promise(() => undefined),
    },
    leases: { forget: async () => undefined } as unknown as LeaseStore,
    limits: { waiting: 100, atOnce: 1, atOncePerEndpoint: 1 },
    dispatch: () => undefined,
    log: createLogger('silent', 'stderr'),
  });
  const ids = Array.from({ length: 6 }, (_, n) => `whd_${n}`);
  const event = { createdAt: new Date(), apiVersion: null, source: null, subject: null, data: '' };
  const common = { tenantId: 't', endpointId: 'we_1', eventId: 'evt_1', type: 'a.b', leased: true, settings: '1/' };
  const submit = (id: string, data: string): void =>
    lane.submit({ ...common, id }, { ...common, event: { ...event, data }, asOf: thisMoment() });
  // The first goes at once; of 6 MiB each, two find room.
  for (const id of ids.slice(0, 4)) submit(id, id.padEnd(6 * 2 ** 20, 'é'));
  for (let turn = 0; turn < 4; turn += 1) {
    await until('the next attempt', async () => ends.length > turn, 5_000);
    ends[turn]!();
  }
  await until('all are done', async () => lane.backlog === 0, 5_000);
  expect(seen.map((fresh) => fresh?.event.data?.slice(0, 6) ?? null)).toEqual(['whd_0é', 'whd_1é', 'whd_2é', null]);
  // There is room again.
  for (const id of ids.slice(4)) submit(id, id.padEnd(10 * 2 ** 20, 'é'));
  for (let turn = 4; turn < 6; turn += 1) {
    await until('the next attempt', async () => ends.length > turn, 5_000);
    ends[turn]!();
  }
  expect(seen.slice(4).map((fresh) => fresh?.event.data?.length)).toEqual([10 * 2 ** 20, 10 * 2 ** 20]);
  await lane.stop();
});
