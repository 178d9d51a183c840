import type { ReconcileReport } from '../../activities/contracts/reconcile-activities.js';
import type { DatabaseGauges, PoolUse } from '../database/gauge-store.js';
import { within } from '../within.js';
import type { Metrics } from './metrics.js';

export interface SlotUse {
  readonly taskQueue: string;
  readonly kind: 'activity' | 'workflow_task';
  readonly used: number;
  readonly limit: number;
}

/** What is looked up when somebody reads the page. */
export interface MetricSources {
  readonly dispatcherBacklog: () => number;
  readonly expressBacklog: () => number;
  readonly pool: () => PoolUse;
  readonly slots: () => readonly SlotUse[];
  readonly database: () => Promise<DatabaseGauges>;
  readonly feedLagMs: () => Promise<number>;
  readonly reconciliation: () => Promise<ReconcileReport | null>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** However many look at it, the database is asked no more often than this, and less often where it takes long to answer. */
const askEveryMs = 5_000;
const restPerWork = 20;
/** A scrape that takes longer is given up by who asked for it. */
const patienceMs = 4_000;

/** The text of `/metrics`. A database that is away costs its own gauges, never the page. */
export class MetricsPage {
  readonly contentType: string;
  private asking: Promise<void> | null = null;
  private askAgainAt = 0;

  constructor(
    private readonly metrics: Metrics,
    private readonly sources: MetricSources,
  ) {
    this.contentType = metrics.registry.contentType;
  }

  async text(): Promise<string> {
    this.readProcess();
    await this.readDatabase();
    return this.metrics.registry.metrics();
  }

  private readProcess(): void {
    const { metrics, sources } = this;
    metrics.dispatcherQueue.set(sources.dispatcherBacklog());
    metrics.expressBacklog.set(sources.expressBacklog());
    const { used, idle, waiting } = sources.pool();
    metrics.poolConnections.set({ state: 'used' }, used);
    metrics.poolConnections.set({ state: 'idle' }, idle);
    metrics.poolWaiting.set(waiting);
    for (const { taskQueue, kind, used, limit } of sources.slots()) {
      metrics.slots.set({ task_queue: taskQueue, kind, state: 'used' }, used);
      metrics.slots.set({ task_queue: taskQueue, kind, state: 'free' }, Math.max(0, limit - used));
    }
  }

  private async readDatabase(): Promise<void> {
    if (this.sources.now() >= this.askAgainAt)
      this.asking ??= this.ask().finally(() => {
        this.asking = null;
      });
    await this.asking;
  }

  private async ask(): Promise<void> {
    const { sources } = this;
    const startedAt = sources.now();
    const asked = Promise.all([sources.database(), sources.feedLagMs(), sources.reconciliation()]);
    const answer = await within(
      patienceMs,
      asked.catch(() => null),
      null,
    );
    if (answer) this.show(...answer);
    else this.hide();
    const now = sources.now();
    this.askAgainAt = now + Math.max(askEveryMs, (now - startedAt) * restPerWork);
  }

  private show(database: DatabaseGauges, feedLagMs: number, report: ReconcileReport | null): void {
    const { metrics } = this;
    this.hide();
    metrics.databaseUp.set(1);
    for (const status of ['pending', 'retrying', 'held'] as const) {
      const row = database.backlog.find((one) => one.status === status);
      metrics.backlog.set({ status }, row?.count ?? 0);
      metrics.queueAge.set({ status }, row?.due_seconds ?? 0);
    }
    metrics.sweeperLag.set(database.overdue_seconds ?? 0);
    for (const { reason, count } of database.letters) metrics.openLetters.set({ reason }, count);
    for (const { status, count } of database.endpoints) metrics.endpoints.set({ status }, count);
    for (const status of ['pending', 'failed'] as const)
      metrics.mails.set({ status }, database.mails.find((one) => one.status === status)?.count ?? 0);
    metrics.feedLag.set(feedLagMs / 1_000);
    if (!report) return;
    metrics.reconciliationAge.set(Math.max(0, this.sources.now() - Date.parse(report.finishedAt)) / 1_000);
    for (const [kind, count] of Object.entries(report.gaps)) metrics.reconciliationGaps.set({ kind }, count);
  }

  /** What nobody knows just now isn't shown: an old figure would look like a true one. */
  private hide(): void {
    const { metrics } = this;
    for (const gauge of [
      metrics.backlog,
      metrics.queueAge,
      metrics.openLetters,
      metrics.endpoints,
      metrics.mails,
      metrics.reconciliationGaps,
    ])
      gauge.reset();
    for (const gauge of [metrics.sweeperLag, metrics.feedLag, metrics.reconciliationAge]) gauge.remove();
    metrics.databaseUp.set(0);
  }
}
