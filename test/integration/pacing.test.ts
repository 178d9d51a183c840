import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DispatchJob, Dispatcher } from '../../src/temporal/dispatcher.js';
import { Releaser } from '../../src/temporal/releaser.js';
import { BacklogStore } from '../../src/database/backlog-store.js';
import { NoticeStore } from '../../src/database/notice-store.js';
import { SweepStore } from '../../src/database/sweep-store.js';
import { HeldAnswers } from '../support/held-answers.js';
import { RecordingReceiver } from '../support/posthorn.js';
import { silentLog } from '../support/workflow-engine.js';
import { Attempts, day, type StoredDelivery } from './attempts/harness.js';

let attempts: Attempts;
let receiver: RecordingReceiver;
let releaser: Releaser;
/** What was handed to the dispatcher, in order. */
let handed: string[];
let backlogs: BacklogStore;

beforeAll(async () => {
  attempts = await Attempts.start();
  receiver = await RecordingReceiver.start();
});
beforeEach(async () => {
  says(200);
  handed = [];
  backlogs = new BacklogStore(attempts.db, new NoticeStore(attempts.db, attempts.events, { mails: false }), {
    atLeast: 50,
    windowMs: 3_600_000,
  });
  await attempts.sql(
    `update deliveries set status = 'cancelled', sweep_after = null where status in ('pending', 'retrying', 'held')`,
  );
  const submit = (job: DispatchJob): boolean => (job.kind === 'release' && handed.push(job.delivery.id), true);
  releaser = new Releaser({
    paces: attempts.paces,
    sweeps: new SweepStore(attempts.db),
    backlogs,
    dispatcher: { submit } as unknown as Dispatcher,
    queueAgeMs: day,
    letterAdded: async () => undefined,
    log: silentLog,
  });
});
afterEach(() => releaser.stop());
afterAll(async () => {
  await receiver.stop();
  await attempts.stop();
});

const says = (status: number): void => {
  receiver.answer = (_, reply) => void reply.writeHead(status).end();
};
const statuses = async (deliveries: readonly StoredDelivery[]): Promise<string[]> =>
  Promise.all(deliveries.map(async (delivery) => (await attempts.row(delivery)).status as string));
const countOf = (all: readonly string[], one: string): number => all.filter((status) => status === one).length;
const dueNow = async (deliveries: readonly StoredDelivery[]): Promise<unknown> =>
  attempts.sql('update deliveries set next_attempt_at = now() where id = any($1)', [deliveries.map(({ id }) => id)]);

/** An endpoint that failed three times in a row. */
async function down(): Promise<{ endpointId: string; failed: StoredDelivery[] }> {
  says(500);
  const endpointId = await attempts.createEndpoint(receiver.url);
  const failed = await attempts.publishTo(endpointId, 3);
  for (const delivery of failed) await attempts.attempt(delivery);
  return { endpointId, failed };
}

/** An endpoint that takes so many requests a second. */
async function limited(perSecond: number): Promise<string> {
  const endpointId = await attempts.createEndpoint(receiver.url);
  await attempts.sql('update endpoints set rate_limit_per_second = $2 where id = $1', [endpointId, perSecond]);
  return endpointId;
}

describe('an endpoint that is down', () => {
  it('is so after three failures in a row, not after fewer', async () => {
    says(500);
    const endpointId = await attempts.createEndpoint(receiver.url);
    const deliveries = await attempts.publishTo(endpointId, 6);
    const paces: string[] = [];
    for (const [index, status] of [500, 500, 200, 500, 500, 500].entries()) {
      says(status);
      await attempts.attempt(deliveries[index]!);
      paces.push((await attempts.endpoint(endpointId)).pace as string);
    }
    expect(paces).toEqual(['open', 'open', 'open', 'open', 'open', 'probing']);
  });

  it('gets one request at a time; the others are held, without an attempt', async () => {
    const { endpointId, failed } = await down();
    await attempts.sql('update endpoints set probe_after = null where id = $1', [endpointId]);
    await dueNow(failed);
    const before = receiver.requests.length;
    await Promise.all(failed.map((delivery) => attempts.attempt(delivery, { sequence: 2 })));
    expect(receiver.requests.length - before).toBe(1);
    const now = await statuses(failed);
    expect(countOf(now, 'held')).toBe(2);
    expect(countOf(now, 'retrying')).toBe(1);
    const held = failed.find((_, index) => now[index] === 'held')!;
    expect(await attempts.row(held)).toMatchObject({
      reason: 'rate_limited',
      round_attempts: 1,
      next_attempt_at: null,
    });
  });

  it('gets fresh events as held ones, without a workflow', async () => {
    const { endpointId } = await down();
    const [fresh] = await attempts.publishTo(endpointId);
    expect(await attempts.row(fresh!)).toMatchObject({ status: 'held', reason: 'rate_limited', sweep_after: null });
  });

  it('is asked by the oldest that is held, when its rest is over', async () => {
    const { endpointId } = await down();
    const held = await attempts.publishTo(endpointId, 3);
    await releaser.releaseOnce();
    expect(await statuses(held)).toEqual(['held', 'held', 'held']);
    await attempts.sql(`update endpoints set probe_after = now() - interval '1 s' where id = $1`, [endpointId]);
    await releaser.releaseOnce();
    await releaser.releaseOnce();
    expect(await statuses(held)).toEqual(['pending', 'held', 'held']);
    await expect.poll(() => handed).toEqual([held[0]!.id]);
  });

  it('keeps a lone delivery to its own schedule', async () => {
    const { endpointId } = await down();
    // Half of the shortest wait, 10 s at most.
    const { probe_after: after } = await attempts.endpoint(endpointId);
    expect((after as Date).getTime() - Date.now()).toBeLessThanOrEqual(10_000);
  });

  it('does not keep a person’s wish waiting', async () => {
    const { failed } = await down();
    says(200);
    const outcome = await attempts.attempt(failed[0]!, { sequence: 2, force: true });
    expect(outcome).toMatchObject({ kind: 'closed', status: 'succeeded' });
  });
});

describe('an endpoint that answers again', () => {
  it('gets 1, 2, 4, … from second to second, oldest first', async () => {
    const { endpointId, failed } = await down();
    const held = await attempts.publishTo(endpointId, 40);
    says(200);
    await attempts.attempt(failed[0]!, { sequence: 2, force: true });
    expect(await attempts.endpoint(endpointId)).toMatchObject({ pace: 'rising', failure_streak: 0 });
    /** As if it had answered again so many seconds ago. */
    const releasedAfter = async (seconds: number): Promise<number> => {
      await attempts.sql(`update endpoints set rising_since = now() - interval '${seconds} s' where id = $1`, [
        endpointId,
      ]);
      await attempts.sql(
        `update endpoint_paces set rising_since = (select rising_since from endpoints where id = $1) where endpoint_id = $1`,
        [endpointId],
      );
      await releaser.releaseOnce();
      return countOf(await statuses(held), 'pending');
    };
    expect(await releasedAfter(0)).toBe(1);
    expect(await releasedAfter(1)).toBe(3);
    expect(await releasedAfter(2)).toBe(7);
    expect(await releasedAfter(3)).toBe(15);
    expect((await statuses(held)).slice(0, 15)).toEqual(Array.from({ length: 15 }, () => 'pending'));
    // What is released within a second is spread over it.
    const due = await attempts.sql<{ at: Date }>(
      'select next_attempt_at as at from deliveries where id = any($1) order by id',
      [held.slice(7, 15).map(({ id }) => id)],
    );
    expect(due.at(-1)!.at.getTime() - due[0]!.at.getTime()).toBeGreaterThan(500);
    expect(await releasedAfter(8)).toBe(40);
    expect(await attempts.endpoint(endpointId)).toMatchObject({ pace: 'open' });
  });

  it('is down again at the third failure in a row', async () => {
    const { endpointId, failed } = await down();
    says(200);
    await attempts.attempt(failed[0]!, { sequence: 2, force: true });
    says(500);
    const deliveries = await attempts.publishTo(endpointId, 3);
    for (const delivery of deliveries) await attempts.attempt(delivery, { force: true });
    await attempts.sql(`update deliveries set status = 'pending' where id = any($1)`, [deliveries.map(({ id }) => id)]);
    for (const delivery of deliveries) await attempts.attempt(delivery, { force: true });
    expect(await attempts.endpoint(endpointId)).toMatchObject({ pace: 'probing' });
  });
});

describe('a rate limit', () => {
  it('gives out slots that are that far apart, however many ask at once', async () => {
    const endpointId = await limited(10);
    const deliveries = await attempts.publishTo(endpointId, 10);
    await Promise.all(deliveries.map((delivery) => attempts.attempt(delivery)));
    const sent = deliveries.filter(({ id }) => receiver.of(id).length > 0).length;
    // Those whose slot came within 250 ms waited for it in place.
    expect(sent).toBeGreaterThanOrEqual(2);
    expect(sent).toBeLessThanOrEqual(4);
    const waiting = await attempts.sql<{ at: Date; slot: string }>(
      `select next_attempt_at as at, slot from deliveries where endpoint_id = $1 and status = 'pending' order by next_attempt_at`,
      [endpointId],
    );
    expect(waiting).toHaveLength(10 - sent);
    expect(waiting.every(({ slot }) => slot === 'taken')).toBe(true);
    for (const [index, { at }] of waiting.entries())
      expect(at.getTime() - waiting[0]!.at.getTime()).toBeGreaterThanOrEqual(index * 100 - 30);
  });

  it('holds what one request publishes beyond a second’s worth, and releases it slot by slot', async () => {
    const endpointId = await limited(20);
    const deliveries = await attempts.publishTo(endpointId, 200);
    expect(countOf(await statuses(deliveries), 'held')).toBe(180);
    const startedAt = Date.now();
    await releaser.releaseOnce();
    // Three seconds ahead, and no further: what comes meanwhile finds its place.
    expect(countOf(await statuses(deliveries), 'held')).toBe(120);
    await releaser.releaseOnce();
    const slotsSince = Math.ceil((Date.now() - startedAt) / 50) + 1;
    expect(countOf(await statuses(deliveries), 'held')).toBeGreaterThanOrEqual(120 - slotsSince);
    const due = await attempts.sql<{ at: Date }>(
      `select next_attempt_at as at from deliveries where endpoint_id = $1 and slot = 'taken' order by next_attempt_at`,
      [endpointId],
    );
    const gaps = due.slice(1).map(({ at }, index) => at.getTime() - due[index]!.at.getTime());
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(49);
  });

  it('holds fresh events behind those that wait', async () => {
    const endpointId = await limited(20);
    await attempts.publishTo(endpointId, 100);
    const [late] = await attempts.publishTo(endpointId);
    expect(await attempts.row(late!)).toMatchObject({ status: 'held', reason: 'rate_limited' });
  });

  it('gives retries their share, and fresh events the rest', async () => {
    const endpointId = await limited(10);
    const retries = await attempts.publishTo(endpointId, 10);
    await attempts.sql(
      `update deliveries set status = 'retrying', attempt_count = 1, round_attempts = 1, next_attempt_at = now() where id = any($1)`,
      [retries.map(({ id }) => id)],
    );
    await Promise.all(retries.map((delivery) => attempts.attempt(delivery, { sequence: 2 })));
    const waiting = await attempts.sql<{ in_ms: number; slot: string }>(
      `select extract(epoch from next_attempt_at - now())::float8 * 1000 as in_ms, slot from deliveries
        where endpoint_id = $1 and status = 'retrying' and slot is not null order by next_attempt_at`,
      [endpointId],
    );
    expect(waiting.every(({ slot }) => slot === 'retry')).toBe(true);
    // Half of ten a second: the last of ten waits for nearly two seconds.
    expect(waiting.at(-1)!.in_ms).toBeGreaterThan(1_300);
    // They have taken nothing that a fresh event could want.
    const [pace] = await attempts.sql<{ ahead_ms: number }>(
      'select extract(epoch from next_slot_at - now())::float8 * 1000 as ahead_ms from endpoint_paces where endpoint_id = $1',
      [endpointId],
    );
    expect(pace!.ahead_ms).toBeLessThan(500);
  });

  it('is what the endpoint itself allowed, where that is less', async () => {
    const endpointId = await limited(100);
    await attempts.sql('update endpoints set allowed_rate_per_minute = 60 where id = $1', [endpointId]);
    const deliveries = await attempts.publishTo(endpointId, 5);
    expect(countOf(await statuses(deliveries), 'held')).toBe(4);
  });
});

describe('a backlog', () => {
  it('is told to the owner when it is large and grows, once a window, with its size and the time that it will take', async () => {
    const endpointId = await limited(10);
    const told = () =>
      attempts.sql<{ data: string }>(`select data from notices where endpoint_id = $1 and type = 'endpoint.backlog'`, [
        endpointId,
      ]);
    await attempts.publishTo(endpointId, 60);
    await backlogs.warn([endpointId]);
    await backlogs.warn([endpointId]);
    expect(await told()).toEqual([]);
    await attempts.publishTo(endpointId, 20);
    expect(await backlogs.warn([endpointId])).toBe(1);
    const [notice] = await told();
    expect(JSON.parse(notice!.data)).toMatchObject({ size: 70, rate_per_second: 10, estimated_seconds: 7 });
    await attempts.publishTo(endpointId, 20);
    expect(await backlogs.warn([endpointId])).toBe(0);
    expect(await told()).toHaveLength(1);
  });

  it('of an endpoint that few deliveries wait for is none', async () => {
    const endpointId = await limited(10);
    for (let look = 0; look < 3; look += 1) {
      await attempts.publishTo(endpointId, 15);
      await backlogs.warn([endpointId]);
    }
    const notices = await attempts.sql('select 1 from notices where endpoint_id = $1', [endpointId]);
    expect(notices).toEqual([]);
  });
});

describe('what waits for its turn for too long', () => {
  it('is given up with a letter that says why', async () => {
    const { endpointId } = await down();
    const [old, young] = await attempts.publishTo(endpointId, 2);
    await attempts.sql(`update deliveries set held_since = now() - interval '25 h' where id = $1`, [old!.id]);
    await releaser.releaseOnce();
    expect(await attempts.row(old!)).toMatchObject({ status: 'failed', reason: 'queue_age_exceeded' });
    expect(await attempts.lettersOf(old!)).toMatchObject([{ reason: 'queue_age_exceeded', attempts: 0 }]);
    expect(await attempts.row(young!)).toMatchObject({ status: 'held' });
  });
});

describe('requests in flight', () => {
  it('are bounded per endpoint: what finds no room spends no attempt', async () => {
    attempts.settings = { ...attempts.settings, maxInFlight: 1 };
    const held = new HeldAnswers();
    receiver.answer = held.answer;
    const deliveries = await attempts.publishTo(await attempts.createEndpoint(receiver.url), 2);
    const first = attempts.attempt(deliveries[0]!);
    await held.arrived(1);
    expect(await attempts.attempt(deliveries[1]!)).toEqual({ kind: 'not_sent', cause: 'no_connection_free' });
    const other = await attempts.publish(receiver.url);
    const elsewhere = attempts.attempt(other);
    await held.arrived(2);
    held.releaseEach(() => 200);
    expect(await first).toMatchObject({ kind: 'closed', status: 'succeeded' });
    expect(await elsewhere).toMatchObject({ kind: 'closed', status: 'succeeded' });
    expect(await attempts.row(deliveries[1]!)).toMatchObject({ status: 'pending', attempt_count: 0 });
    attempts.settings = { ...attempts.settings, maxInFlight: 64 };
  });
});
