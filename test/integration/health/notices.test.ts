import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../../src/security/new-id.js';
import { day } from '../attempts/harness.js';
import { Health } from './harness.js';

const hour = 3_600_000;
let health: Health;

beforeAll(async () => void (health = await Health.start()));
beforeEach(() => {
  health.answers = false;
  health.mailer = null;
});
afterAll(() => health.stop());

const ago = (ms: number): Date => new Date(Date.now() - ms);
const ahead = (ms: number): Date => new Date(Date.now() + ms);

describe('an endpoint without one success', () => {
  it('has its owner told at 24 h and at 72 h, and is disabled at 7 d', async () => {
    const id = await health.endpoint({ failing_since: ago(day - 60_000) });
    expect((await health.run(id)).done).toEqual([]);
    await health.pass(id, 61_000);
    expect((await health.run(id)).done).toContain('warn');
    await health.pass(id, day);
    expect((await health.run(id)).done).toEqual([]);
    await health.pass(id, day);
    await health.run(id);
    expect(await health.told(id)).toEqual(['endpoint.failing', 'endpoint.failing']);
    await health.pass(id, 4 * day - 60_000);
    expect((await health.run(id)).done).toEqual([]);
    expect(await health.state(id)).toMatchObject({ status: 'active' });
    await health.pass(id, 60_000);
    expect((await health.run(id)).done).toEqual(['disable', 'send_mail']);
    expect(await health.state(id)).toMatchObject({ status: 'disabled', status_reason: 'failing' });
    expect(await health.told(id)).toEqual(['endpoint.failing', 'endpoint.failing', 'endpoint.disabled']);
  });

  it('that is away for long is warned of once', async () => {
    const id = await health.endpoint({ failing_since: ago(4 * day) });
    await health.run(id);
    expect(await health.notices(id)).toMatchObject([
      { type: 'endpoint.failing', data: { failing_for_ms: 3 * day, host: 'hooks.example.com' } },
    ]);
  });

  it('gives up what waits for it, and says so with the letters', async () => {
    const id = await health.endpoint();
    const [delivery] = await health.base.publishTo(id, 3);
    await health.set(id, { failing_since: ago(8 * day) });
    await health.run(id);
    expect(await health.base.row(delivery!)).toMatchObject({ status: 'failed', reason: 'endpoint_disabled' });
    expect(await health.base.lettersOf(delivery!)).toHaveLength(1);
    expect(health.letters).toContain(id);
  });

  it('closes what waits, too, where the process died after the disabling', async () => {
    const id = await health.endpoint();
    const [delivery] = await health.base.publishTo(id);
    await health.set(id, { failing_since: ago(8 * day) });
    await health.store().disable(id);
    expect(await health.base.row(delivery!)).toMatchObject({ status: 'pending' });
    await health.perform('disable', id);
    expect(await health.base.row(delivery!)).toMatchObject({ status: 'failed' });
    expect(await health.told(id)).toEqual(['endpoint.disabled']);
  });

  it('isn’t disabled where it succeeded at the last moment', async () => {
    const id = await health.endpoint({ failing_since: ago(8 * day) });
    const activities = health.activities();
    expect(await activities.planHealth({ endpointId: id, dealtWith: null })).toMatchObject({ tasks: ['disable'] });
    await health.set(id, { failing_since: null, last_success_at: new Date() });
    await activities.disableEndpoint({ endpointId: id });
    await activities.warnOwner({ endpointId: id });
    expect(await health.state(id)).toMatchObject({ status: 'active' });
    expect(await health.told(id)).toEqual([]);
  });

  it('doesn’t count the time in which it was paused', async () => {
    const id = await health.endpoint({ failing_since: ago(30 * day), resumed_at: ago(hour) });
    expect((await health.run(id)).plan.next).toMatchObject({ task: 'warn' });
    expect(await health.told(id)).toEqual([]);
  });
});

describe('two processes at once', () => {
  it.each([
    ['warn', { failing_since: ago(2 * day) }],
    ['disable', { failing_since: ago(8 * day) }],
    ['tell_disabled', { status: 'disabled', status_reason: 'gone' }],
    ['tell_refused', { refused_since: ago(hour) }],
    ['tell_expiring', { expires_at: ahead(day) }],
    ['tell_certificate_expiring', { client_certificate_expires_at: ahead(day) }],
    ['expire', { expires_at: ago(1_000) }],
  ] as const)('do %s once', async (task, columns) => {
    const listener = await health.listener(['endpoint.*']);
    const id = await health.endpoint(columns);
    await Promise.all(Array.from({ length: 6 }, () => health.perform(task, id)));
    expect(await health.notices(id)).toHaveLength(1);
    const events = await health.sql(
      `select 1 from deliveries d join events v on v.id = d.event_id and v.tenant_id = d.tenant_id
      where d.endpoint_id = $1 and v.subject = $2`,
      [listener, id],
    );
    expect(events).toHaveLength(1);
    await health.sql('update endpoints set deleted_at = now() where id = $1', [listener]);
  });
});

describe('a recovery', () => {
  it('is told once, to who was told of the trouble', async () => {
    const id = await health.endpoint({ failing_since: ago(2 * day) });
    await health.run(id);
    await health.set(id, { failing_since: null, last_success_at: new Date() });
    await health.run(id);
    await health.run(id);
    expect(await health.told(id)).toEqual(['endpoint.failing', 'endpoint.recovered']);
  });

  it('is told to nobody who wasn’t: flapping makes no noise', async () => {
    const id = await health.endpoint();
    for (let flap = 0; flap < 5; flap++) {
      await health.set(id, { failing_since: ago(20 * hour) });
      await health.run(id);
      await health.set(id, { failing_since: null, last_success_at: new Date() });
      await health.run(id);
    }
    expect(await health.told(id)).toEqual([]);
  });

  it('needs a success: another URL or a new secret is none', async () => {
    const id = await health.endpoint({ failing_since: ago(2 * day), last_success_at: ago(3 * day) });
    await health.run(id);
    await health.set(id, { failing_since: null });
    expect((await health.run(id)).done).toEqual([]);
    await health.set(id, { last_success_at: new Date() });
    expect((await health.run(id)).done).toContain('tell_recovered');
  });

  it('ends an episode: the next one is told of anew', async () => {
    const id = await health.endpoint({ refused_since: ago(2 * hour), last_success_at: ago(3 * hour) });
    await health.run(id);
    await health.set(id, { refused_since: null, last_success_at: new Date() });
    await health.run(id);
    await health.pass(id, 2 * hour);
    await health.set(id, { refused_since: new Date() });
    await health.run(id);
    expect(await health.told(id)).toEqual(['endpoint.refused', 'endpoint.recovered', 'endpoint.refused']);
  });
});

const disabled = async (): Promise<string> => {
  const id = await health.endpoint({ failing_since: ago(8 * day) });
  await health.run(id);
  return id;
};

describe('a probe of a disabled endpoint', () => {
  it('goes out after 1 h, then 2 h later, then 4 h, and ends after 30 days', async () => {
    const id = await disabled();
    const inHours: number[] = [];
    for (let tries = 0; tries < 60; tries++) {
      const { plan } = await health.run(id);
      if (plan.next === null) break;
      expect(plan.next.task).toBe('probe');
      inHours.push(Math.round(plan.next.inMs / hour));
      await health.pass(id, plan.next.inMs);
    }
    expect(inHours.slice(0, 6)).toEqual([1, 2, 4, 8, 16, 24]);
    const total = inHours.reduce((sum, hours) => sum + hours, 0);
    expect(total).toBeLessThanOrEqual(30 * 24);
    expect(total).toBeGreaterThan(29 * 24);
    expect(await health.state(id)).toMatchObject({ status: 'disabled' });
  });

  it('that is answered enables the endpoint, slowly at first, and its owner hears of it', async () => {
    const id = await disabled();
    await health.pass(id, hour);
    health.answers = true;
    await health.run(id);
    expect(await health.state(id)).toMatchObject({
      status: 'active',
      status_reason: null,
      failing_since: null,
      failure_streak: 0,
      pace: 'probing',
    });
    await health.run(id);
    expect(await health.notices(id)).toMatchObject([
      { type: 'endpoint.disabled' },
      { type: 'endpoint.recovered', data: { enabled: true } },
    ]);
  });

  it('that is answered tells the owner once, where endpoints are enabled by hand', async () => {
    const id = await disabled();
    const store = health.store(false);
    const activities = health.activities(store);
    await health.pass(id, hour);
    health.answers = true;
    await activities.probeEndpoint({ endpointId: id });
    await activities.probeEndpoint({ endpointId: id });
    expect(await health.state(id)).toMatchObject({ status: 'disabled', status_reason: 'failing' });
    expect(await health.notices(id, 'endpoint.recovered')).toMatchObject([{ data: { enabled: false } }]);
    // Enabled by hand, and then a delivery succeeds.
    await store.enable('default', id);
    expect((await health.run(id)).done).not.toContain('tell_recovered');
    await health.set(id, { last_success_at: new Date() });
    await health.run(id);
    expect((await health.notices(id, 'endpoint.recovered')).map(({ data }) => data.enabled)).toEqual([false, true]);
  });
});

describe('an expiry', () => {
  it('is told 7 days ahead and comes at the date, with letters', async () => {
    const id = await health.endpoint({ expires_at: ahead(8 * day) });
    const [delivery] = await health.base.publishTo(id);
    expect((await health.run(id)).plan.coming.map(({ task }) => task)).toEqual(['tell_expiring', 'expire']);
    await health.pass(id, day);
    expect((await health.run(id)).done).toContain('tell_expiring');
    expect((await health.run(id)).done).toEqual([]);
    await health.pass(id, 7 * day);
    expect((await health.run(id)).done).toContain('expire');
    expect(await health.state(id)).toMatchObject({ status: 'expired' });
    expect(await health.base.row(delivery!)).toMatchObject({ status: 'failed', reason: 'endpoint_expired' });
    expect(await health.told(id)).toEqual(['endpoint.expiring', 'endpoint.expired']);
  });

  it('that is moved is told of anew', async () => {
    const id = await health.endpoint({ expires_at: ahead(day) });
    await health.run(id);
    await health.store().renew('default', id, ahead(2 * day));
    await health.run(id);
    expect(await health.told(id)).toEqual(['endpoint.expiring', 'endpoint.expiring']);
  });
});

describe('a client certificate', () => {
  it('is told of 7 days ahead, once, and another one anew', async () => {
    const id = await health.endpoint({ client_certificate_expires_at: ahead(8 * day) });
    expect((await health.run(id)).plan.coming.map(({ task }) => task)).toEqual(['tell_certificate_expiring']);
    await health.set(id, { client_certificate_expires_at: ahead(6 * day) });
    expect((await health.run(id)).done).toContain('tell_certificate_expiring');
    expect((await health.run(id)).done).toEqual([]);
    await health.set(id, { client_certificate_expires_at: ahead(5 * day) });
    await health.run(id);
    expect(await health.told(id)).toEqual(['endpoint.certificate_expiring', 'endpoint.certificate_expiring']);
  });
});

describe('a verification that ran out', () => {
  it('disables the endpoint and tells its owner', async () => {
    const id = await health.endpoint({ status: 'pending_verification' });
    await health.sql(
      `update endpoint_checks set passed_at = null, next_at = now(), tries = 9, started_at = now() - interval '73 hours' where endpoint_id = $1`,
      [id],
    );
    await health.run(id);
    expect(await health.state(id)).toMatchObject({ status: 'disabled', status_reason: 'verification_expired' });
    expect(await health.notices(id)).toMatchObject([{ type: 'endpoint.verification_expired', data: { tries: 9 } }]);
  });
});

describe('an operational event', () => {
  it('goes to who names it, not to who wants all, and not to the endpoint that it is about', async () => {
    const [byName, byPattern, all] = [
      await health.listener(['endpoint.failing']),
      await health.listener(['endpoint.*']),
      await health.listener(['*']),
    ];
    const id = await health.endpoint({
      failing_since: ago(2 * day),
      events: ['endpoint.*'],
      event_likes: ['2:endpoint.%'],
    });
    await health.run(id);
    const deliveries = await health.sql<{ endpoint_id: string; type: string; operational: boolean }>(
      `select d.endpoint_id, d.type, d.operational from deliveries d join events v on v.tenant_id = d.tenant_id and v.id = d.event_id
        where v.subject = $1 order by d.endpoint_id`,
      [id],
    );
    expect(deliveries.map((d) => d.endpoint_id)).toEqual([byName, byPattern].sort());
    expect(deliveries.every((d) => d.operational && d.type === 'endpoint.failing')).toBe(true);
    expect(all).toBeTruthy();
    await health.sql(`update endpoints set deleted_at = now() where id = any($1)`, [[byName, byPattern, all]]);
  });

  it('that can’t be delivered makes no notice when it becomes a letter', async () => {
    const listener = await health.listener(['endpoint.failing']);
    const id = await health.endpoint({ failing_since: ago(2 * day) });
    await health.run(id);
    await health.sql(
      `insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, expires_at)
       select id, 1, tenant_id, event_id, endpoint_id, type, 'attempts_exhausted', 6, now() + interval '30 days'
         from deliveries where endpoint_id = $1`,
      [listener],
    );
    const activities = health.activities();
    expect(await activities.announceDeadLetters({ endpointId: listener })).toEqual({ announced: 1, open: 1 });
    expect(await health.told(listener)).toEqual([]);
    await health.sql(`update endpoints set deleted_at = now() where id = $1`, [listener]);
  });
});

describe('letters', () => {
  it('of one window are one notice, and one mail a day', async () => {
    const id = await health.endpoint({ failing_since: null });
    const activities = health.activities();
    const addLetters = async (count: number): Promise<void> => {
      await health.base.publishTo(id, count);
      await health.sql(
        `insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, expires_at)
         select id, 1, tenant_id, event_id, endpoint_id, type, 'attempts_exhausted', 6, now() + interval '30 days'
           from deliveries where endpoint_id = $1 on conflict do nothing`,
        [id],
      );
    };
    await addLetters(3);
    await Promise.all([1, 2, 3].map(() => activities.announceDeadLetters({ endpointId: id })));
    await addLetters(2);
    await activities.announceDeadLetters({ endpointId: id });
    const notices = await health.notices(id);
    expect(notices).toMatchObject([
      {
        type: 'delivery.exhausted',
        mail_status: 'pending',
        data: { count: 3, open: 3, reasons: { attempts_exhausted: 3 } },
      },
      { type: 'delivery.exhausted', mail_status: 'none', data: { count: 2, open: 5 } },
    ]);
    expect(notices[0]!.data.delivery_ids).toHaveLength(3);
    // The endpoint's workflow has a mail to send.
    expect(await activities.planHealth({ endpointId: id, dealtWith: null })).toMatchObject({ tasks: ['send_mail'] });
  });
});

describe('actions', () => {
  type Column = 'pause' | 'resume' | 'enable' | 'renew';
  const table: readonly (readonly [string, Record<Column, string>])[] = [
    ['active', { pause: 'paused', resume: '=', enable: '=', renew: 'active' }],
    ['pending_verification', { pause: 'paused', resume: '=', enable: '=', renew: 'pending_verification' }],
    ['paused', { pause: '=', resume: 'active', enable: '! resume', renew: 'paused' }],
    ['disabled', { pause: '! enable', resume: '! enable', enable: 'active', renew: 'disabled' }],
    ['expired', { pause: '! renew', resume: '! renew', enable: '! renew', renew: 'active' }],
  ];

  it.each(
    table.flatMap(([status, row]) =>
      Object.entries(row).map(([action, result]) => [status, action as Column, result] as const),
    ),
  )('%s, %s: %s', async (status, action, expected) => {
    const id = await health.endpoint({ status, status_reason: status === 'disabled' ? 'failing' : null });
    const before = await health.state(id);
    const store = health.store();
    const result =
      action === 'renew' ? await store.renew('default', id, ahead(day)) : await store[action]('default', id);
    const after = await health.state(id);
    if (expected.startsWith('! ')) {
      expect(result).toEqual({ kind: 'conflict', status, remedy: expected.slice(2) });
      expect(after.written_by).toBe(before.written_by);
    } else if (expected === '=') {
      expect(result).toEqual({ kind: 'done', changed: false, status });
      expect(after.written_by).toBe(before.written_by);
    } else {
      expect(result).toEqual({ kind: 'done', changed: true, status: expected });
      expect(after).toMatchObject({ status: expected });
      expect(Number(after.health_version)).toBeGreaterThan(Number(before.health_version));
      expect(after.health_sweep_after).not.toBeNull();
    }
  });

  it('bring back to verification who never passed it', async () => {
    const id = await health.endpoint({ status: 'pending_verification' });
    await health.sql(
      `update endpoint_checks set passed_at = null, tries = 9, started_at = now() - interval '2 days' where endpoint_id = $1`,
      [id],
    );
    const store = health.store();
    await store.pause('default', id);
    expect(await store.resume('default', id)).toMatchObject({ status: 'pending_verification' });
    const [check] = await health.sql(
      `select tries, started_at > now() - interval '1 minute' as anew from endpoint_checks where endpoint_id = $1`,
      [id],
    );
    expect(check).toEqual({ tries: 0, anew: true });
  });

  it('begin with a slow pace, and without the old failures where it was disabled', async () => {
    const id = await health.endpoint({
      status: 'disabled',
      status_reason: 'failing',
      failing_since: ago(9 * day),
      failure_streak: 5,
    });
    await health.store().enable('default', id);
    expect(await health.state(id)).toMatchObject({
      status: 'active',
      pace: 'probing',
      failure_streak: 0,
      failing_since: null,
      probe_after: null,
    });
    expect((await health.state(id)).resumed_at).not.toBeNull();
  });

  it('refuse a past date, and an enabling after the end', async () => {
    const id = await health.endpoint({ status: 'expired', expires_at: ago(day) });
    expect(await health.store().renew('default', id, ago(1_000))).toEqual({ kind: 'past' });
    const other = await health.endpoint({ status: 'disabled', status_reason: 'gone', expires_at: ago(day) });
    expect(await health.store().enable('default', other)).toMatchObject({ kind: 'conflict', remedy: 'renew' });
  });

  it('know no endpoint of another tenant', async () => {
    const id = await health.endpoint();
    const store = health.store();
    for (const result of [
      store.pause('other', id),
      store.resume('other', id),
      store.enable('other', id),
      store.renew('other', id, null),
      store.health('other', id),
      store.pause('default', newId('we_')),
    ])
      expect(await result).toBeNull();
  });
});

describe('the health report', () => {
  it('has state, evidence, backlog, what was missed, what was told and what is to come', async () => {
    const id = await health.endpoint();
    const [first, second] = await health.base.publishTo(id, 2);
    await health.base.store.record(health.base.failure(first!, { statusCode: 503, errorMessage: 'HTTP 503' }));
    const report = await health.store().health('default', id);
    expect(report).toMatchObject({
      status: 'active',
      evidence: {
        attempts: 1,
        failedAttempts: 1,
        lastFailures: [{ deliveryId: first!.id, statusCode: 503, errorCode: 'http_status' }],
      },
      backlog: { held: 0, waiting: 2 },
      missed: null,
      notices: [],
      coming: [{ what: 'warn' }, { what: 'warn' }, { what: 'disable' }],
      mail: { ownerEmail: 'owner@example.com', pending: 0 },
    });
    expect(report!.failingSince).toEqual(report!.evidence.firstFailureAt);
    expect(report!.coming[2]!.at.getTime() - report!.failingSince!.getTime()).toBeCloseTo(7 * day, -3);
    await health.set(id, { failing_since: ago(8 * day) });
    await health.run(id);
    await health.base.publishTo(id, 4);
    const later = await health.store().health('default', id);
    expect(later).toMatchObject({
      status: 'disabled',
      statusReason: 'failing',
      missed: { events: 4 },
      backlog: { waiting: 0, oldestAt: null },
      notices: [{ type: 'endpoint.disabled' }],
      coming: [{ what: 'probe' }],
    });
    expect(second).toBeTruthy();
  });
});
