import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDataSource } from '../../src/database/data-source.js';
import { ReplayStore } from '../../src/database/replay-store.js';
import { SweepStore } from '../../src/database/sweep-store.js';
import type { DeliveryStart, RunState, StartResult, TemporalGateway } from '../../src/temporal/gateway.js';
import { Sweeper } from '../../src/temporal/sweeper.js';
import { until } from '../support/posthorn.js';
import { Attempts, type StoredDelivery } from './attempts/harness.js';

const nothing = (): void => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const by = { keyId: 'key_1', reason: null };

/** Temporal as the test says it is; what it does may happen between two steps of the sweeper. */
class StubGateway {
  readonly described: string[] = [];
  readonly started: { readonly id: string; readonly by: string; readonly which: 'first' | 'again' }[] = [];
  readonly woken: string[] = [];
  readonly letters: string[] = [];
  readonly changed: string[] = [];
  store = 'the first store';
  describeAs: (id: string) => Promise<RunState> = async () => 'running';
  startAs: (id: string) => Promise<StartResult> = async () => 'started';
  wakes = true;

  async describe(id: string): Promise<RunState> {
    this.described.push(id);
    return this.describeAs(id);
  }

  async startDelivery({ id }: DeliveryStart, startedBy: string, which: 'first' | 'again'): Promise<StartResult> {
    this.started.push({ id, by: startedBy, which });
    return this.startAs(id);
  }

  async retryNow(id: string): Promise<boolean> {
    this.woken.push(id);
    return this.wakes;
  }

  async endpointChanged(endpointId: string): Promise<void> {
    this.changed.push(endpointId);
  }

  async storeId(): Promise<string> {
    return this.store;
  }

  async letterAdded(endpointId: string): Promise<void> {
    this.letters.push(endpointId);
  }
}

let attempts: Attempts;
let store: SweepStore;
let gateway: StubGateway;
let sweeper: Sweeper;

beforeAll(async () => {
  attempts = await Attempts.start();
  store = new SweepStore(attempts.db);
});
beforeEach(async () => {
  await attempts.sql(
    `update deliveries set status = 'cancelled', sweep_after = null where status in ('pending', 'retrying', 'held')`,
  );
  await attempts.sql('update dead_letters set announced_at = now()');
  gateway = new StubGateway();
  sweeper = newSweeper();
});
afterAll(() => attempts.stop());

function newSweeper(): Sweeper {
  return new Sweeper({
    store,
    waiting: attempts.waiting,
    health: attempts.health,
    replays: new ReplayStore(attempts.db, { maxItems: 1_000 }),
    gateway: gateway as unknown as TemporalGateway,
    housekeeping: async () => undefined,
    log,
  });
}

/** A delivery that should have moved a second ago. */
async function overdue(changes = ''): Promise<StoredDelivery> {
  const delivery = await attempts.publish('https://hooks.example.com/in');
  await attempts.sql(`update deliveries set sweep_after = now() - interval '1 s'${changes} where id = $1`, [
    delivery.id,
  ]);
  return delivery;
}

const succeed = (id: string): Promise<unknown> =>
  attempts.sql(
    `update deliveries set status = 'succeeded', reason = 'delivered', next_attempt_at = null, sweep_after = null where id = $1`,
    [id],
  );

async function isLookedAtLater(delivery: StoredDelivery): Promise<void> {
  const [row] = await attempts.sql<{ later: boolean }>(
    `select sweep_after > now() + interval '5 s' as later from deliveries where id = $1`,
    [delivery.id],
  );
  expect(row!.later).toBe(true);
}

describe('an overdue row', () => {
  it('that is not overdue yet is left alone', async () => {
    const delivery = await attempts.publish('https://hooks.example.com/in');
    expect(await sweeper.sweepOnce()).toEqual({ overdue: 0, started: 0, closed: 0 });
    expect(gateway.described).not.toContain(delivery.id);
  });

  it('whose workflow runs is left to it, and looked at later', async () => {
    const delivery = await overdue();
    expect(await sweeper.sweepOnce()).toEqual({ overdue: 1, started: 0, closed: 0 });
    expect(gateway.started).toEqual([]);
    expect(gateway.woken).toEqual([]);
    await isLookedAtLater(delivery);
  });

  it('that has no workflow gets its first', async () => {
    const delivery = await overdue();
    gateway.describeAs = async () => 'not_found';
    expect(await sweeper.sweepOnce()).toEqual({ overdue: 1, started: 1, closed: 0 });
    expect(gateway.started).toEqual([{ id: delivery.id, by: 'sweeper', which: 'first' }]);
    await isLookedAtLater(delivery);
  });

  it('that the dispatcher starts at the same moment is started once', async () => {
    await overdue();
    gateway.describeAs = async () => 'not_found';
    gateway.startAs = async () => 'already_there';
    expect(await sweeper.sweepOnce()).toEqual({ overdue: 1, started: 0, closed: 0 });
  });

  it('that succeeds after it was found without a workflow is at most started as a first one, which can not redeliver', async () => {
    const delivery = await overdue();
    gateway.describeAs = async (id) => {
      await succeed(id);
      return 'not_found';
    };
    await sweeper.sweepOnce();
    expect(gateway.started.every(({ which }) => which === 'first')).toBe(true);
    expect(await attempts.row(delivery)).toMatchObject({ status: 'succeeded', round: 1, sweep_after: null });
  });

  it('whose workflow is closed although it is open is started again', async () => {
    const delivery = await overdue();
    gateway.describeAs = async () => 'closed';
    expect(await sweeper.sweepOnce()).toMatchObject({ started: 1 });
    expect(gateway.started).toEqual([{ id: delivery.id, by: 'sweeper', which: 'again' }]);
  });

  it('whose workflow records and closes while the sweeper looks is done: no redelivery', async () => {
    const delivery = await overdue();
    gateway.describeAs = async (id) => {
      await succeed(id);
      return 'closed';
    };
    expect(await sweeper.sweepOnce()).toEqual({ overdue: 1, started: 0, closed: 1 });
    expect(gateway.started).toEqual([]);
    expect(await attempts.row(delivery)).toMatchObject({ status: 'succeeded', sweep_after: null });
  });

  it('that is held when the sweeper looks again waits for its endpoint', async () => {
    await overdue();
    gateway.describeAs = async (id) => {
      await attempts.sql(`update deliveries set status = 'held', sweep_after = null where id = $1`, [id]);
      return 'closed';
    };
    await sweeper.sweepOnce();
    expect(gateway.started).toEqual([]);
  });
});

describe('a workflow that was terminated by hand', () => {
  it('leaves a cancelled row that says so', async () => {
    const delivery = await overdue(`, status = 'retrying'`);
    gateway.describeAs = async () => 'terminated';
    expect(await sweeper.sweepOnce()).toEqual({ overdue: 1, started: 0, closed: 1 });
    expect(await attempts.row(delivery)).toMatchObject({
      status: 'cancelled',
      reason: 'terminated_by_operator',
      next_attempt_at: null,
      sweep_after: null,
    });
    expect(gateway.started).toEqual([]);
  });

  it('after it had recorded a success leaves the success', async () => {
    const delivery = await overdue();
    gateway.describeAs = async (id) => {
      await succeed(id);
      return 'terminated';
    };
    await sweeper.sweepOnce();
    expect(await attempts.row(delivery)).toMatchObject({ status: 'succeeded' });
  });

  it('before a redelivery was asked for does not take the redelivery along', async () => {
    const delivery = await overdue();
    gateway.describeAs = async (id) => {
      await attempts.deliveries.cancel('default', id, by);
      await attempts.deliveries.redeliver('default', id, by);
      return 'terminated';
    };
    await sweeper.sweepOnce();
    expect(gateway.started).toEqual([{ id: delivery.id, by: 'sweeper', which: 'again' }]);
    expect(await attempts.row(delivery)).toMatchObject({ status: 'pending', round: 2 });
  });

  it('before a redelivery that comes between the last look and the cancellation does not either', async () => {
    const delivery = await overdue();
    await attempts.deliveries.cancel('default', delivery.id, by);
    await attempts.deliveries.redeliver('default', delivery.id, by);
    await store.closeTerminated(delivery.id, 1);
    await store.closeTerminated(delivery.id, 2);
    expect(await attempts.row(delivery)).toMatchObject({ status: 'pending', round: 2, wake_requested: true });
  });
});

describe('a redelivery whose signal was lost', () => {
  it('wakes the running workflow', async () => {
    const delivery = await overdue(', wake_requested = true');
    await sweeper.sweepOnce();
    expect(gateway.woken).toEqual([delivery.id]);
    expect(await attempts.row(delivery)).toMatchObject({ wake_requested: false });
    await isLookedAtLater(delivery);
  });

  it('stays asked for where the workflow closes meanwhile', async () => {
    const delivery = await overdue(', wake_requested = true');
    gateway.wakes = false;
    await sweeper.sweepOnce();
    expect(await attempts.row(delivery)).toMatchObject({ wake_requested: true });
  });

  it('is started where no workflow runs', async () => {
    const delivery = await overdue(', wake_requested = true, round = 2');
    gateway.describeAs = async () => 'closed';
    await sweeper.sweepOnce();
    expect(gateway.started).toEqual([{ id: delivery.id, by: 'sweeper', which: 'again' }]);
  });

  it('of an earlier round does not swallow the newer wish', async () => {
    const delivery = await overdue(', wake_requested = true, round = 3');
    await store.woken(delivery.id, 2);
    expect(await attempts.row(delivery)).toMatchObject({ wake_requested: true });
  });
});

describe('a sweep', () => {
  it('takes the 200 oldest first, and the rest with the next one', async () => {
    const endpointId = await attempts.createEndpoint('https://hooks.example.com/in');
    const deliveries = await attempts.publishTo(endpointId, 250);
    await attempts.sql('update deliveries set sweep_after = null where endpoint_id = $1', [endpointId]);
    for (const [index, { id }] of deliveries.entries()) {
      // The last ones are the oldest.
      await attempts.sql(`update deliveries set sweep_after = now() - $2 * interval '1 s' where id = $1`, [
        id,
        10 + index,
      ]);
    }
    const oldestFirst = deliveries.map(({ id }) => id).toReversed();
    expect(await sweeper.sweepOnce()).toMatchObject({ overdue: 200 });
    expect(gateway.described).toEqual(oldestFirst.slice(0, 200));
    expect(await sweeper.sweepOnce()).toMatchObject({ overdue: 50 });
    expect(gateway.described.slice(200)).toEqual(oldestFirst.slice(200));
  });

  it('that meets an absent Temporal fails, and loses nothing', async () => {
    const [one, other] = [await overdue(), await overdue()];
    gateway.describeAs = async (id) => {
      if (id === other.id) throw new Error('Temporal is away');
      return 'not_found';
    };
    await expect(sweeper.sweepOnce()).rejects.toThrow('away');
    await isLookedAtLater(one);
    gateway.describeAs = async () => 'not_found';
    await sweeper.sweepOnce();
    expect(gateway.started.map(({ id }) => id)).toEqual([one.id, other.id]);
  });

  it('runs in one of two processes at a time, and in the other once the first has died', async () => {
    const otherDb = createDataSource({ url: attempts.databaseUrl, poolSize: 2 });
    await otherDb.initialize();
    const other = new SweepStore(otherDb);
    let entered!: () => void;
    const inside = new Promise<void>((resolve) => (entered = resolve));
    let leave!: () => void;
    const first = store.exclusively(async () => {
      entered();
      await new Promise<void>((resolve) => (leave = resolve));
    });
    await inside;
    let ran = false;
    expect(await other.exclusively(async () => void (ran = true))).toBe(false);
    expect(ran).toBe(false);
    // The first process dies: its connection breaks, and with it the lock.
    const killed = first.then(
      () => 'finished',
      () => 'failed',
    );
    await attempts.sql(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and database =
         (select oid from pg_database where datname = current_database())`,
    );
    await until('the other one sweeps', () => other.exclusively(async () => void (ran = true)));
    expect(ran).toBe(true);
    leave();
    expect(await killed).toBe('failed');
    await otherDb.destroy();
  });

  it('goes on by itself, every second, also after a failure', async () => {
    const delivery = await overdue();
    let failures = 1;
    gateway.describeAs = async () => {
      if (failures-- > 0) throw new Error('Temporal is away');
      return 'not_found';
    };
    sweeper.start();
    await until('the row is started', async () => gateway.started.some(({ id }) => id === delivery.id));
    await sweeper.stop();
  });
});

describe('what else a sweep repairs', () => {
  it.each([
    ['deleted', 'update endpoints set deleted_at = now() where id = $1', 'cancelled', 'endpoint_deleted'],
    ['disabled', `update endpoints set status = 'disabled' where id = $1`, 'failed', 'endpoint_disabled'],
    [
      'gone',
      `update endpoints set status = 'disabled', status_reason = 'gone' where id = $1`,
      'failed',
      'endpoint_gone',
    ],
    ['paused', `update endpoints set status = 'paused' where id = $1`, 'held', 'endpoint_paused'],
  ])('deliveries that a process left waiting for a %s endpoint', async (_, change, status, reason) => {
    const delivery = await overdue();
    await attempts.sql(change, [delivery.endpointId]);
    await sweeper.sweepOnce();
    expect(await attempts.row(delivery)).toMatchObject({ status, reason, sweep_after: null });
    expect(gateway.started).toEqual([]);
    expect(await attempts.lettersOf(delivery)).toHaveLength(status === 'failed' ? 1 : 0);
  });

  it('letters that nobody was told of for a while are announced, fresh ones are left to their attempt', async () => {
    const [lost, fresh] = [await overdue(), await overdue()];
    for (const delivery of [lost, fresh]) await attempts.store.record(attempts.failure(delivery, { waitMs: null }));
    await attempts.sql(`update dead_letters set created_at = now() - interval '20 s' where delivery_id = $1`, [
      lost.id,
    ]);
    await sweeper.sweepOnce();
    expect(gateway.letters).toEqual([lost.endpointId]);
  });
});
