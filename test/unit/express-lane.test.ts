import { it } from 'vitest';
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
