import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { DatabaseGauges } from '../../src/database/gauge-store.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { MetricsPage, type MetricSources } from '../../src/telemetry/metrics-page.js';
import { startMetricsServer } from '../../src/telemetry/metrics-server.js';
import { SlotCounter } from '../../src/telemetry/slot-counter.js';

const nothing = (): void => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

const gauges: DatabaseGauges = {
  backlog: [
    { status: 'pending', count: 3, due_seconds: 12.5 },
    { status: 'held', count: 7, due_seconds: null },
  ],
  overdue_seconds: 2,
  letters: [{ reason: 'attempts_exhausted', count: 4 }],
  endpoints: [{ status: 'active', count: 2 }],
  mails: [{ status: 'failed', count: 1 }],
};

function page(changes: Partial<MetricSources> = {}) {
  const metrics = new Metrics();
  const sources: MetricSources = {
    dispatcherBacklog: () => 5,
    expressBacklog: () => 7,
    pool: () => ({ used: 2, idle: 1, waiting: 0 }),
    slots: () => [{ taskQueue: 'posthorn-attempts', kind: 'activity', used: 3, limit: 200 }],
    database: async () => gauges,
    feedLagMs: async () => 1_500,
    reconciliation: async () => null,
    now: () => 0,
    ...changes,
  };
  return { metrics, page: new MetricsPage(metrics, sources) };
}

/** The lines of one metric, without its name's explanation. */
const linesOf = (text: string, name: string): string[] =>
  text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));

const inOrder = (list: { name?: string | undefined }[]) => list.toSorted((a, b) => (a.name! < b.name! ? -1 : 1));

describe('the documentation of metrics', () => {
  const text = readFileSync(new URL('../../docs/operations/observability.md', import.meta.url), 'utf8');
  const documented = [...text.matchAll(/^\| `(posthorn_\w+)` *\| (\w+) *\| ([^|]*?) *\|/gm)].map(
    ([, name, type, labels]) => ({ name, type, labels: [...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label) }),
  );

  it('has a row for every one, with its type and labels, and for no other', async () => {
    const known = (await new Metrics().registry.getMetricsAsJSON()) as unknown as { name: string; type: string }[];
    const registry = new Metrics().registry;
    const actual = known.map(({ name, type }) => ({
      name,
      type,
      labels: (registry.getSingleMetric(name) as unknown as { labelNames: string[] }).labelNames,
    }));
    expect(inOrder(documented)).toEqual(inOrder(actual));
  });

  it('has no label that could have as many values as there are tenants or endpoints', () => {
    expect(documented.length).toBeGreaterThan(15);
    for (const { name, labels } of documented)
      for (const label of labels) expect([name, label!.endsWith('_id')]).toEqual([name, false]);
    const closed = ['status', 'reason', 'outcome', 'error_code', 'by', 'state', 'task_queue', 'kind', 'cause'];
    expect(new Set(documented.flatMap(({ labels }) => labels))).toEqual(new Set(closed));
  });
});

describe('the page', () => {
  it('tells what the process counted', async () => {
    const { metrics, page: it } = page();
    metrics.eventAccepted(['pending', 'held', 'cancelled']);
    metrics.attemptRecorded({ outcome: 'failed', errorCode: 'timeout_response', durationMs: 10_000 });
    metrics.attemptRecorded({ outcome: 'failed', errorCode: 'outcome_unknown', durationMs: 0 });
    metrics.attemptNotSent('proxy_failed');
    metrics.deliveryClosed('failed', 'attempts_exhausted', 3);
    const text = await it.text();
    expect(linesOf(text, 'posthorn_events_accepted_total')).toEqual(['posthorn_events_accepted_total 1']);
    expect(linesOf(text, 'posthorn_deliveries_closed_total')).toEqual([
      'posthorn_deliveries_closed_total{status="cancelled",reason="verification_dropped"} 1',
      'posthorn_deliveries_closed_total{status="failed",reason="attempts_exhausted"} 3',
    ]);
    expect(linesOf(text, 'posthorn_attempts_total')).toHaveLength(2);
    expect(linesOf(text, 'posthorn_attempts_not_sent_total')).toEqual([
      'posthorn_attempts_not_sent_total{cause="proxy_failed"} 1',
    ]);
    expect(text).toContain('posthorn_attempt_duration_seconds_bucket{le="5",outcome="failed"} 0');
    expect(text).toContain('posthorn_attempt_duration_seconds_bucket{le="10",outcome="failed"} 1');
    expect(text).toContain('posthorn_attempt_duration_seconds_count{outcome="failed"} 1');
    expect(linesOf(text, 'posthorn_worker_slots')).toEqual([
      'posthorn_worker_slots{task_queue="posthorn-attempts",kind="activity",state="used"} 3',
      'posthorn_worker_slots{task_queue="posthorn-attempts",kind="activity",state="free"} 197',
    ]);
  });

  it('tells what the database knows, also where that is nothing', async () => {
    const text = await page().page.text();
    expect(linesOf(text, 'posthorn_backlog_deliveries')).toEqual([
      'posthorn_backlog_deliveries{status="pending"} 3',
      'posthorn_backlog_deliveries{status="retrying"} 0',
      'posthorn_backlog_deliveries{status="held"} 7',
    ]);
    expect(linesOf(text, 'posthorn_queue_oldest_due_seconds')[0]).toBe(
      'posthorn_queue_oldest_due_seconds{status="pending"} 12.5',
    );
    expect(linesOf(text, 'posthorn_event_feed_lag_seconds')).toEqual(['posthorn_event_feed_lag_seconds 1.5']);
    expect(linesOf(text, 'posthorn_reconciliation_age_seconds')).toEqual([]);
    expect(linesOf(text, 'posthorn_metrics_database_up')).toEqual(['posthorn_metrics_database_up 1']);
  });

  it('is told without a database, and shows no old figures then', async () => {
    let nowMs = 0;
    let away = false;
    const { page: it } = page({
      now: () => nowMs,
      database: async () => {
        if (away) throw new Error('away');
        return gauges;
      },
    });
    expect(linesOf(await it.text(), 'posthorn_sweeper_lag_seconds')).toEqual(['posthorn_sweeper_lag_seconds 2']);
    away = true;
    nowMs = 5_000;
    const text = await it.text();
    for (const name of ['backlog_deliveries', 'sweeper_lag_seconds', 'event_feed_lag_seconds', 'dead_letters_open'])
      expect([name, linesOf(text, `posthorn_${name}`)]).toEqual([name, []]);
    expect(linesOf(text, 'posthorn_metrics_database_up')).toEqual(['posthorn_metrics_database_up 0']);
    expect(linesOf(text, 'posthorn_express_deliveries')).toEqual(['posthorn_express_deliveries 7']);
    expect(linesOf(text, 'posthorn_dispatcher_queue_length')).toEqual(['posthorn_dispatcher_queue_length 5']);
  });

  it('asks the database once for many readers, and not again for five seconds, or longer where it is slow', async () => {
    let nowMs = 0;
    let asked = 0;
    let workMs = 0;
    const { page: it } = page({
      now: () => nowMs,
      database: async () => {
        asked += 1;
        nowMs += workMs;
        return gauges;
      },
    });
    const askedAt = async (ms: number): Promise<number> => {
      nowMs = ms;
      await it.text();
      return asked;
    };
    await Promise.all([it.text(), it.text(), it.text()]);
    expect(asked).toBe(1);
    expect(await askedAt(4_999)).toBe(1);
    workMs = 1_000;
    expect(await askedAt(5_000)).toBe(2);
    expect(await askedAt(25_999)).toBe(2);
    expect(await askedAt(26_000)).toBe(3);
  });
});

describe('the server of a worker', () => {
  it('answers /metrics, and nothing else', async () => {
    const server = await startMetricsServer(page().page, { host: '127.0.0.1', port: 0, log: silent });
    try {
      const base = `http://127.0.0.1:${server.port}`;
      const answer = await fetch(`${base}/metrics?x=1`);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/plain')]);
      expect(await answer.text()).toContain('posthorn_events_accepted_total 0');
      expect((await fetch(`${base}/`)).status).toBe(404);
      expect((await fetch(`${base}/metrics`, { method: 'POST' })).status).toBe(405);
    } finally {
      await server.stop();
    }
  });

  it('answers 500 where the page fails', async () => {
    const broken = { contentType: 'text/plain', text: () => Promise.reject(new Error('broken')) };
    const server = await startMetricsServer(broken, { host: '127.0.0.1', port: 0, log: silent });
    try {
      expect((await fetch(`http://127.0.0.1:${server.port}/metrics`)).status).toBe(500);
    } finally {
      await server.stop();
    }
  });
});

describe('slots', () => {
  it('are in use while an activity works, also where it fails', async () => {
    const counter = new SlotCounter();
    let finish!: () => void;
    const activities = counter.watch(
      'posthorn',
      {
        work: (input: number) => new Promise<number>((resolve) => (finish = () => resolve(input))),
        fail: async () => {
          throw new Error('no');
        },
      },
      10,
    );
    const used = (): number => counter.read()[0]!.used;
    const working = activities.work(42);
    expect(used()).toBe(1);
    finish();
    expect([await working, used()]).toEqual([42, 0]);
    await expect(activities.fail()).rejects.toThrow('no');
    expect(counter.read()).toEqual([{ taskQueue: 'posthorn', kind: 'activity', used: 0, limit: 10 }]);
    const others = [{ taskQueue: 'posthorn', kind: 'workflow_task', used: 2, limit: 60 }] as const;
    counter.addSource(() => others);
    expect(counter.read().slice(1)).toEqual(others);
  });
});
