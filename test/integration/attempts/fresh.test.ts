import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { LoadedDelivery } from '../../../src/database/attempt-rows.js';
import { AttemptStore } from '../../../src/database/attempt-store.js';
import { EndpointSecretStore } from '../../../src/database/endpoint-secret-store.js';
import type { NewDelivery } from '../../../src/database/event-store.js';
import {
  freshForMs,
  KnownEndpoints,
  lookForMs,
  type Moment,
  thisMoment,
} from '../../../src/database/known-endpoints.js';
import { leaseMs } from '../../../src/database/lease-sql.js';
import { Attempts, newEvent } from './harness.js';

const holder = 'express/lse_fresh';
let attempts: Attempts;
/** Statements by name, since it was emptied. */
let asked: string[];
/** Milliseconds that the store's clock is ahead. */
let later = 0;
let store: AttemptStore;

beforeAll(async () => {
  attempts = await Attempts.start();
  const { hot } = attempts.db;
  const run = hot.run.bind(hot);
  hot.run = (statement, values) => {
    asked.push(statement.name);
    return run(statement, values);
  };
});
afterAll(() => attempts.stop());
beforeEach(() => {
  asked = [];
  later = 0;
  store = new AttemptStore(attempts.db, holder, () => after(thisMoment(), later));
});

const after = ({ ticksMs, wallMs }: Moment, ms: number): Moment => ({ ticksMs: ticksMs + ms, wallMs: wallMs + ms });

async function publish(endpointId: string, leaseHolder: string | null = holder): Promise<NewDelivery> {
  const event = newEvent(`only.${endpointId.toLowerCase()}`, { data: '{"card":4242}' });
  const [result] = await attempts.events.publish([event], { leaseHolder });
  if (result?.kind !== 'accepted') throw new Error('not accepted');
  asked = [];
  return result.deliveries[0]!;
}

const load = ({ id, fresh }: NewDelivery, withFresh = fresh) =>
  store.load({ deliveryId: id, runId: holder, sequence: 1 }, withFresh);

/** An endpoint that an attempt has read before. */
async function knownEndpoint(): Promise<string> {
  const endpointId = await attempts.createEndpoint('https://hooks.example.com/');
  await load(await publish(endpointId));
  expect(asked).toEqual(['load_attempts']);
  return endpointId;
}

describe('a delivery that was made just now', () => {
  it('is not read again, and is what reading it would give', async () => {
    const endpointId = await knownEndpoint();
    const delivery = await publish(endpointId);
    const loaded = await load(delivery);
    expect(asked).toEqual([]);
    const read = await load(delivery, null);
    expect(asked).toEqual(['load_attempts']);
    // Since when it is due is the only thing that time changes.
    expect(read!.dueInMs).toBeLessThanOrEqual(0);
    const comparable = ({ event, ...rest }: LoadedDelivery) => ({
      ...rest,
      dueInMs: 0,
      event: Object.fromEntries(Object.keys(read!.event).map((key) => [key, event[key as keyof typeof event] ?? null])),
    });
    expect(comparable(loaded!)).toEqual(comparable(read!));
  });

  it.each<[string, (endpointId: string) => Promise<unknown>]>([
    ['its URL', (id) => attempts.sql(`update endpoints set url = 'https://other.example.com/' where id = $1`, [id])],
    ['a new secret', (id) => rotate(id)],
    ['an old secret ended', (id) => endOldSecret(id)],
    ['what is registered of its type', (id) => register(`only.${id.toLowerCase()}`)],
  ])('is read where something changed before it was made: %s', async (_what, change) => {
    const endpointId = await attempts.createEndpoint('https://hooks.example.com/');
    await rotate(endpointId);
    await load(await publish(endpointId));
    await load(await publish(endpointId));
    expect(asked).toEqual([]);
    await change(endpointId);
    const delivery = await publish(endpointId);
    const loaded = await load(delivery);
    expect(asked).toEqual(['load_attempts']);
    expect(loaded).toEqual({ ...(await load(delivery, null)), dueInMs: expect.any(Number) as number });
  });

  it('is looked at again where it had to wait: nothing was done to it', async () => {
    const delivery = await publish(await knownEndpoint());
    later = freshForMs;
    expect(await load(delivery)).toMatchObject({ status: 'pending', lease: 'ours' });
    expect(asked).toEqual(['find_untouched']);
    later = lookForMs;
    asked = [];
    await load(delivery);
    expect(asked).toEqual(['load_attempts']);
  });

  it.each<[string, (delivery: NewDelivery) => Promise<unknown>, Partial<LoadedDelivery>]>([
    [
      'cancelled',
      ({ id }) => attempts.sql(`update deliveries set status = 'cancelled' where id = $1`, [id]),
      { status: 'cancelled' },
    ],
    [
      'taken over',
      ({ id }) => attempts.sql(`update deliveries set lease_holder = null where id = $1`, [id]),
      { lease: 'none' },
    ],
    [
      'redelivered',
      ({ id }) => attempts.sql(`update deliveries set wake_requested = true where id = $1`, [id]),
      { wakeRequested: true },
    ],
    [
      'its endpoint paused',
      ({ endpointId }) => attempts.sql(`update endpoints set status = 'paused' where id = $1`, [endpointId]),
      { endpoint: expect.objectContaining({ status: 'paused' }) as LoadedDelivery['endpoint'] },
    ],
  ])('is read again where it had to wait and was %s', async (_what, change, found) => {
    const delivery = await publish(await knownEndpoint());
    await change(delivery);
    later = freshForMs;
    expect(await load(delivery)).toMatchObject(found);
    expect(asked).toEqual(['find_untouched', 'load_attempts']);
  });

  it.each([
    ['is paused', `status = 'paused'`],
    ['rests', `not_before = now() + interval '1 minute'`],
    ['has a rate limit', 'rate_limit_per_second = 5'],
    ['is down', `pace = 'probing'`],
    ['was slow', 'quick = false'],
  ])('is read where its endpoint %s', async (_what, change) => {
    const endpointId = await knownEndpoint();
    const delivery = await publish(endpointId);
    await attempts.sql(`update endpoints set ${change} where id = $1`, [endpointId]);
    await load(delivery, null);
    later = freshForMs;
    for (let time = 0; time < 2; time += 1) {
      asked = [];
      await load(delivery);
      expect(asked).toContain('load_attempts');
    }
  });

  it('is read where its endpoint has a rate limit, though another one has its slot already', async () => {
    const endpointId = await attempts.createEndpoint('https://hooks.example.com/');
    await attempts.sql('update endpoints set rate_limit_per_second = 50 where id = $1', [endpointId]);
    const first = await publish(endpointId);
    await attempts.sql(`update deliveries set slot = 'taken' where id = $1`, [first.id]);
    expect(await load(first)).toMatchObject({ mustAsk: false });
    expect(await load(await publish(endpointId))).toMatchObject({ mustAsk: true });
    expect(asked).toEqual(['load_attempts']);
  });

  it.each([
    ['a suspended machine, whose monotonic clock stood still', { ticksMs: 0, wallMs: 3_600_000 }],
    ['a wall clock that was set back', { ticksMs: 60, wallMs: -3_600_000 }],
  ])('is not young to %s', async (_what, passed) => {
    const delivery = await publish(await knownEndpoint());
    const clock = (): Moment => {
      const { ticksMs, wallMs } = thisMoment();
      return { ticksMs: ticksMs + passed.ticksMs, wallMs: wallMs + passed.wallMs };
    };
    const known = new KnownEndpoints(clock);
    expect(known.isYoung(delivery.fresh!)).toBe(false);
    expect(new KnownEndpoints().isYoung(delivery.fresh!)).toBe(true);
  });

  it('is read once a secret of its endpoint has ended by itself', async () => {
    const endpointId = await attempts.createEndpoint('https://hooks.example.com/');
    await rotate(endpointId, 10_000);
    await load(await publish(endpointId));
    later = 9_000;
    const before = await publish(endpointId);
    await load({ ...before, fresh: { ...before.fresh!, asOf: after(before.fresh!.asOf, later) } });
    expect(asked).toEqual([]);
    later = 10_001;
    const afterwards = await publish(endpointId);
    await load({ ...afterwards, fresh: { ...afterwards.fresh!, asOf: after(afterwards.fresh!.asOf, later) } });
    expect(asked).toEqual(['load_attempts']);
  });

  it('goes to a workflow without a lease: taken once, and looked at again where that comes late', async () => {
    const endpointId = await knownEndpoint();
    const delivery = await publish(endpointId, null);
    store.expect(delivery.id, delivery.fresh!);
    const first = await load(delivery, null);
    expect(first).toMatchObject({ lease: 'none', status: 'pending' });
    expect(asked).toEqual([]);
    // A second execution of the same attempt has to see what the first one recorded.
    await load(delivery, null);
    expect(asked).toEqual(['load_attempts']);

    const late = await publish(endpointId, null);
    store.expect(late.id, late.fresh!);
    later = freshForMs;
    await load(late, null);
    expect(asked).toEqual(['find_untouched']);
  });

  it('is read where an attempt of it was recorded meanwhile, or another process leased it', async () => {
    const endpointId = await knownEndpoint();
    for (const change of [
      'attempt_count = 1',
      `lease_holder = 'express/lse_other'`,
      `lease_holder = '${holder}'`,
      `slot = 'taken'`,
      `reason = 'rate_limited'`,
      `next_attempt_at = now() + interval '1 s'`,
    ]) {
      const delivery = await publish(endpointId, null);
      await attempts.sql(`update deliveries set ${change} where id = $1`, [delivery.id]);
      store.expect(delivery.id, delivery.fresh!);
      later = freshForMs;
      await load(delivery, null);
      expect(asked).toEqual(['find_untouched', 'load_attempts']);
    }
  });

  it('goes by what was true at most as long ago as a lease is certain', () => {
    expect(freshForMs).toBeLessThan(leaseMs / 10);
  });
});

async function rotate(endpointId: string, overlapMs = 60_000): Promise<void> {
  const made = await new EndpointSecretStore(attempts.db).rotate('default', endpointId, {
    type: null,
    overlapMs,
    make: () => ({ sealed: `sealed-${Math.random()}`, publicKey: null, isSame: () => false }),
  });
  expect(made?.kind).toBe('rotated');
}

async function endOldSecret(endpointId: string): Promise<void> {
  const secrets = new EndpointSecretStore(attempts.db);
  const old = (await secrets.list('default', endpointId))!.find(({ expires_at }) => expires_at !== null)!;
  expect(await secrets.end('default', endpointId, old.id)).toBe('ended');
}

async function register(type: string): Promise<void> {
  await attempts.sql(
    `insert into event_types (tenant_id, name, definition, rules) values ('default', $1, '{}', '{"versions":[]}')`,
    [type],
  );
}
