import { ulid } from 'ulid';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PurgeStep } from '../../activities/contracts/retention-activities.js';
import { type Retention, RetentionStore } from '../../src/database/retention-store.js';
import { purgeSteps } from '../../workflows/contracts/purge.js';
import { RecordingReceiver } from '../support/posthorn.js';
import { Attempts } from './attempts/harness.js';
import { day, inThePast, type Past, type PastDelivery } from './past.js';

const kept: Retention = {
  payloadsMs: 30 * day,
  attemptsMs: 60 * day,
  deliveriesMs: 90 * day,
  eventsMs: 120 * day,
  noticesMs: 45 * day,
};
let attempts: Attempts;
let receiver: RecordingReceiver;
let endpointId: string;

beforeAll(async () => {
  attempts = await Attempts.start();
  receiver = await RecordingReceiver.start();
  endpointId = await attempts.createEndpoint(receiver.url);
});
afterAll(async () => {
  await receiver.stop();
  await attempts.db.destroy();
});

const past = (changes: Past): Promise<PastDelivery> => inThePast(attempts, endpointId, changes);

/** Batch after batch to the end, as the workflow does. */
async function purge(
  steps: readonly PurgeStep[] = purgeSteps,
  batch = 3,
  retention = kept,
): Promise<Record<string, number>> {
  const store = new RetentionStore(attempts.db, retention, batch);
  const removed: Record<string, number> = {};
  for (const step of steps) {
    removed[step] = 0;
    let after: string | null = null;
    do {
      const result = await store.purge(step, after);
      expect(result.removed).toBeLessThanOrEqual(batch);
      removed[step] += result.removed;
      after = result.after;
    } while (after !== null);
  }
  return removed;
}

async function stateOf({ id, eventId }: PastDelivery) {
  const [event] = await attempts.sql<{ data: string | null; payload_purged_at: Date | null }>(
    'select data, payload_purged_at from events where id = $1',
    [eventId],
  );
  const [rows] = await attempts.sql<{ deliveries: number; attempts: number; letters: number }>(
    `select (select count(*)::int from deliveries where id = $1) as deliveries,
            (select count(*)::int from attempts where delivery_id = $1) as attempts,
            (select count(*)::int from dead_letters where delivery_id = $1) as letters`,
    [id],
  );
  return { payload: event === undefined ? 'no event' : event.data === null ? 'purged' : 'kept', ...rows! };
}

describe('a purge of payloads', () => {
  it('takes those of old events whose deliveries are closed, and of no others', async () => {
    const old = await Promise.all(Array.from({ length: 7 }, () => past({ ageMs: 31 * day })));
    const without = `evt_${ulid()}`;
    await attempts.sql(
      `insert into events (tenant_id, id, type, data, created_at, accepted_at, body_hash)
       values ('default', $1, 'nobody.wants', '{}', now(), now() - interval '31 days', '\\x00')`,
      [without],
    );
    const young = await past({ ageMs: 29 * day });
    const used = [
      await past({ ageMs: 31 * day, status: 'pending' }),
      await past({ ageMs: 31 * day, status: 'retrying' }),
      await past({ ageMs: 31 * day, status: 'held' }),
      await past({ ageMs: 31 * day, status: 'failed', letter: 'open' }),
    ];
    const discarded = await past({ ageMs: 31 * day, status: 'failed', letter: 'resolved' });
    expect(await purge(['payloads'])).toEqual({ payloads: 9 });
    for (const delivery of [...old, discarded]) expect((await stateOf(delivery)).payload).toBe('purged');
    for (const delivery of [young, ...used]) expect((await stateOf(delivery)).payload).toBe('kept');
    expect(await stateOf(old[0]!)).toMatchObject({ deliveries: 1, attempts: 1 });
    expect(await purge(['payloads'])).toEqual({ payloads: 0 });
    await attempts.sql(`update deliveries set status = 'succeeded' where id = $1`, [used[0]!.id]);
    expect(await purge(['payloads'])).toEqual({ payloads: 1 });
  });

  it('leaves what a replay still has to send', async () => {
    const replayed = await past({ ageMs: 31 * day });
    await attempts.sql(
      `insert into replays (id, tenant_id, status, kind, request, rate_per_second, total) values ('rpl_1', 'default', 'paused', 'ids', '{}', 1, 1)`,
    );
    await attempts.sql(
      `insert into replay_items (replay_id, seq, delivery_id, endpoint_id) values ('rpl_1', 1, $1, $2)`,
      [replayed.id, endpointId],
    );
    await purge(['payloads']);
    expect((await stateOf(replayed)).payload).toBe('kept');
    await attempts.sql(`update replay_items set state = 'started'`);
    await purge(['payloads']);
    expect((await stateOf(replayed)).payload).toBe('purged');
    await attempts.sql(`update replays set status = 'completed', finished_at = now() - interval '91 days'`);
    await purge();
    await purge();
    expect(await attempts.sql('select from replays')).toEqual([]);
    expect(await attempts.sql('select from replay_items')).toEqual([]);
  });
});

describe('a purge', () => {
  it('removes attempts first, then deliveries with their letters, then events, each after its time', async () => {
    const ages = { fresh: 1, payload: 40, attempts: 70, deliveries: 100, events: 130 };
    const rows = Object.fromEntries(
      await Promise.all(
        Object.entries(ages).map(
          async ([name, days]) => [name, await past({ ageMs: days * day, attempts: 3 })] as const,
        ),
      ),
    ) as Record<keyof typeof ages, PastDelivery>;
    await purge();
    const states = Object.fromEntries(
      await Promise.all(Object.entries(rows).map(async ([name, row]) => [name, await stateOf(row)] as const)),
    );
    expect(states).toEqual({
      fresh: { payload: 'kept', deliveries: 1, attempts: 3, letters: 0 },
      payload: { payload: 'purged', deliveries: 1, attempts: 3, letters: 0 },
      attempts: { payload: 'purged', deliveries: 1, attempts: 0, letters: 0 },
      deliveries: { payload: 'purged', deliveries: 0, attempts: 0, letters: 0 },
      events: { payload: 'no event', deliveries: 0, attempts: 0, letters: 0 },
    });
  });

  it('leaves what is in use, whatever its age', async () => {
    const inUse = [
      await past({ ageMs: 400 * day, status: 'held' }),
      await past({ ageMs: 400 * day, status: 'retrying' }),
      await past({ ageMs: 400 * day, status: 'failed', letter: 'open' }),
      // Redelivered yesterday.
      await past({ ageMs: 400 * day, closedAgeMs: day }),
    ];
    await purge();
    for (const delivery of inUse.slice(0, 3))
      expect(await stateOf(delivery)).toMatchObject({ payload: 'kept', deliveries: 1, attempts: 1 });
    expect(await stateOf(inUse[3]!)).toMatchObject({ payload: 'purged', deliveries: 1, attempts: 1 });
    expect(await stateOf(inUse[2]!)).toMatchObject({ letters: 1 });
  });

  it('removes a resolved letter with its delivery once the resolution is old', async () => {
    const resolved = await past({ ageMs: 200 * day, status: 'failed', letter: 'resolved' });
    const lately = await past({ ageMs: 200 * day, status: 'failed', letter: 'resolved' });
    await attempts.sql('update dead_letters set resolved_at = now() where delivery_id = $1', [lately.id]);
    await purge();
    expect(await stateOf(resolved)).toEqual({ payload: 'no event', deliveries: 0, attempts: 0, letters: 0 });
    expect(await stateOf(lately)).toMatchObject({ payload: 'purged', deliveries: 1, letters: 1 });
  });

  it('removes old notices, but the newest of each type that an endpoint’s owner knows of', async () => {
    const told = async (endpoint: string, type: string, ageDays: number, mailStatus = 'sent'): Promise<string> => {
      const at = new Date(Date.now() - ageDays * day);
      const id = `ntc_${ulid(at.getTime())}`;
      await attempts.sql(
        `insert into notices (id, tenant_id, endpoint_id, type, episode, data, created_at, mail_status)
         values ($1, 'default', $2, $3, $1, '{}', $4, $5)`,
        [id, endpoint, type, at, mailStatus],
      );
      return id;
    };
    const deleted = await attempts.createEndpoint(receiver.url);
    await attempts.sql('update endpoints set deleted_at = now() where id = $1', [deleted]);
    const gone = [
      await told(endpointId, 'endpoint.failing', 60),
      await told(endpointId, 'endpoint.failing', 50),
      await told(endpointId, 'endpoint.refused', 46),
      await told(deleted, 'endpoint.disabled', 46),
    ];
    const stay = [
      await told(endpointId, 'endpoint.disabled', 400),
      await told(endpointId, 'endpoint.failing', 49),
      await told(endpointId, 'endpoint.refused', 46, 'pending'),
      await told(endpointId, 'endpoint.refused', 44),
      await told(deleted, 'endpoint.disabled', 44),
    ];
    expect(await purge(['notices'])).toEqual({ notices: gone.length });
    expect((await attempts.sql<{ id: string }>('select id from notices')).map(({ id }) => id).sort()).toEqual(
      stay.toSorted(),
    );
  });

  it('forgets idempotency keys after their day', async () => {
    await attempts.sql(
      `insert into idempotency_keys (tenant_id, key, body_hash, created_at)
       select 'default', 'k' || n, '\\x00', now() - (n + 0.5) * interval '1 hour' from generate_series(20, 40) n`,
    );
    expect(await purge(['idempotency_keys'])).toEqual({ idempotency_keys: 16 });
    expect(await attempts.sql(`select from idempotency_keys`)).toHaveLength(5);
  });

  it('runs several at once beside publishers, attempts and redeliveries, and loses nothing of theirs', async () => {
    const old = await Promise.all(Array.from({ length: 150 }, () => past({ ageMs: 130 * day, attempts: 2 })));
    const alive: string[] = [];
    const purging = { goesOn: true };
    const traffic = (async () => {
      while (purging.goesOn) {
        for (const delivery of await attempts.publishTo(endpointId, 3)) {
          alive.push(delivery.id);
          expect(await attempts.attempt(delivery)).toMatchObject({ kind: 'closed', status: 'succeeded' });
        }
      }
    })();
    const reopened: PastDelivery[] = [];
    const redeliveries = (async () => {
      for (const delivery of old.filter((_, n) => n % 10 === 0)) {
        const result = await attempts.deliveries.redeliver('default', delivery.id, { keyId: 'key', reason: null });
        if (result?.kind === 'accepted') reopened.push(delivery);
      }
      // What is open again, with or without its payload, ends in a way that everybody can see.
      for (const delivery of reopened) await attempts.attempt(delivery, { runId: 'again' });
    })();
    const purges = await Promise.all([purge(purgeSteps, 7), purge(purgeSteps, 11), purge(purgeSteps, 5)]);
    await redeliveries;
    await purge();
    purging.goesOn = false;
    await traffic;
    const removed = purges.reduce((sum, one) => sum + one['attempts']!, 0);
    expect(removed).toBeGreaterThan(0);
    const reopenedIds = new Set(reopened.map(({ id }) => id));
    for (const delivery of old) {
      const state = await stateOf(delivery);
      if (!reopenedIds.has(delivery.id))
        expect(state).toEqual({ payload: 'no event', deliveries: 0, attempts: 0, letters: 0 });
      else expect(['succeeded', 'failed']).toContain((await attempts.row(delivery)).status);
    }
    const [left] = await attempts.sql<{ n: number }>(
      `select count(*)::int as n from deliveries d join events v on v.tenant_id = d.tenant_id and v.id = d.event_id
        where d.id = any($1) and d.status = 'succeeded' and v.data is not null`,
      [alive],
    );
    expect(left!.n).toBe(alive.length);
  });
});
