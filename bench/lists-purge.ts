import { createHash } from 'node:crypto';
import { createRetentionActivities } from '../activities/retention.js';
import { createDataSource, type Database } from '../src/database/data-source.js';
import { EventStore } from '../src/database/event-store.js';
import { RetentionStore } from '../src/database/retention-store.js';
import { pause } from '../src/pause.js';
import { newId } from '../src/security/new-id.js';
import { purgeSteps } from '../workflows/contracts/purge.js';

export type ListCall = readonly [name: string, call: () => Promise<unknown>];

export interface PurgeBench {
  readonly databaseUrl: string;
  readonly tenantId: string;
  readonly lists: readonly ListCall[];
  /** What is older is purged. */
  readonly keepMs: number;
  readonly publishesPerSecond: number;
  /** How long the same traffic is measured without a purge, first. */
  readonly beforeMs: number;
}

/** Purges what is old while events are published and lists are read, and prints what that costs both. */
export async function measurePurge(bench: PurgeBench): Promise<void> {
  const db = createDataSource({ url: bench.databaseUrl, poolSize: 4 });
  await db.initialize();
  try {
    const deadlocksBefore = await deadlocks(db);
    const before = await whileTrafficFlows(db, bench, () => pause(bench.beforeMs));
    const purge = new TimedRetention(db, bench.keepMs);
    const startedAt = performance.now();
    const during = await whileTrafficFlows(db, bench, () => purge.run());
    const seconds = (performance.now() - startedAt) / 1_000;
    const removed = [...purge.removed.values()].reduce((sum, rows) => sum + rows, 0);

    print(`\n${'p95, ms'.padEnd(52)}${['before', 'during', 'calls'].map((name) => name.padStart(8)).join('')}\n`);
    for (const [name, times] of during) {
      const figures = [p95(before.get(name) ?? []), p95(times)].map((ms) => ms.toFixed(1));
      print(`${name.padEnd(52)}${[...figures, String(times.length)].map((text) => text.padStart(8)).join('')}\n`);
    }
    print(`\n${[...purge.removed].map(([step, rows]) => `${step} ${rows.toLocaleString('en')}`).join(', ')}\n`);
    print(
      `${removed.toLocaleString('en')} rows in ${seconds.toFixed(1)} s, ${(removed / seconds).toFixed(0)} a second\n`,
    );
    print(`longest statement of the purge ${purge.longestMs.toFixed(0)} ms\n`);
    const found = (await deadlocks(db)) - deadlocksBefore;
    print(`deadlocks ${found}\n`);
    if (found > 0) throw new Error('there were deadlocks');
  } finally {
    await db.destroy();
  }
}

/** All steps as the workflow does them, with their rests; the time of each statement noted. */
class TimedRetention {
  readonly removed = new Map<string, number>();
  longestMs = 0;
  private readonly activities;

  constructor(db: Database, keepMs: number) {
    const ages = { payloadsMs: keepMs, attemptsMs: keepMs, deliveriesMs: keepMs, eventsMs: keepMs, noticesMs: keepMs };
    const store = new RetentionStore(db, ages);
    const purge: RetentionStore['purge'] = async (step, after) => {
      const startedAt = performance.now();
      const batch = await store.purge(step, after);
      this.longestMs = Math.max(this.longestMs, performance.now() - startedAt);
      return batch;
    };
    const timed = { purge } as RetentionStore;
    this.activities = createRetentionActivities({ retention: timed, now: Date.now });
  }

  async run(): Promise<void> {
    for (const step of purgeSteps) {
      let after: string | null = null;
      do {
        const some = await this.activities.purgeSome({ step, after });
        this.removed.set(step, (this.removed.get(step) ?? 0) + some.removed);
        after = some.after;
      } while (after !== null);
    }
  }
}

/** Times of each call, by its name, for as long as the work lasts. */
async function whileTrafficFlows(
  db: Database,
  { lists, tenantId, publishesPerSecond }: PurgeBench,
  work: () => Promise<void>,
): Promise<Map<string, number[]>> {
  const times = new Map<string, number[]>();
  const timed = async (name: string, call: () => Promise<unknown>): Promise<void> => {
    const startedAt = performance.now();
    await call();
    const list = times.get(name) ?? [];
    list.push(performance.now() - startedAt);
    times.set(name, list);
  };
  const events = new EventStore(db, { unverifiedEvents: 'hold' });
  const state = { goesOn: true };
  const publishing = async (): Promise<void> => {
    // At a steady rate: one that is late makes the next ones no later.
    for (let next = performance.now(); state.goesOn; next += 1_000 / publishesPerSecond) {
      await pause(Math.max(0, next - performance.now()));
      await timed('publish', () => events.publish([newEvent(tenantId)]));
    }
  };
  const reading = async (): Promise<void> => {
    for (let n = 0; state.goesOn; n += 1) await timed(...lists[n % lists.length]!);
  };
  const working = work().finally(() => (state.goesOn = false));
  await Promise.all([working, publishing(), reading()]);
  return times;
}

function newEvent(tenantId: string): Parameters<EventStore['publish']>[0][number] {
  const data = JSON.stringify({ text: 'x'.repeat(900) });
  return {
    id: newId('evt_'),
    tenantId,
    type: 'type3.happened',
    source: null,
    subject: null,
    apiVersion: null,
    data,
    createdAt: null,
    bodyHash: createHash('sha256').update(data).digest(),
  };
}

async function deadlocks(db: Database): Promise<number> {
  const [row] = await db.query<{ n: number }[]>(
    'select deadlocks::int as n from pg_stat_database where datname = current_database()',
  );
  return row?.n ?? 0;
}

function p95(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? Number.NaN;
}

const print = (text: string): boolean => process.stdout.write(text);
