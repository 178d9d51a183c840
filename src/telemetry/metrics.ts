import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { DeliveryReason, DeliveryStatus } from '../domain/closed-lists.js';

/** From a quick endpoint to the longest time that an attempt may take. */
const attemptSeconds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export interface CountedAttempt {
  readonly outcome: 'delivered' | 'failed';
  readonly errorCode: string | null;
  readonly durationMs: number;
}

/**
 * Everything that `/metrics` shows of Posthorn; docs/operations/observability.md has a row for each. Labels come from closed
 * lists only: a tenant's or endpoint's id would make a time series of each.
 */
export class Metrics {
  readonly registry = new Registry();
  private readonly registers = [this.registry];

  private readonly eventsAccepted = this.counter(
    'posthorn_events_accepted_total',
    'Events that this process committed to Postgres.',
  );
  private readonly deliveriesCreated = this.counter(
    'posthorn_deliveries_created_total',
    'Deliveries that were made with them.',
    ['status'],
  );
  private readonly deliveriesClosed = this.counter(
    'posthorn_deliveries_closed_total',
    'Deliveries that this process closed: succeeded, failed (a dead letter) or cancelled.',
    ['status', 'reason'],
  );
  private readonly deliveriesStarted = this.counter(
    'posthorn_deliveries_started_total',
    'Workflows of deliveries that this process started.',
    ['by'],
  );
  private readonly attempts = this.counter('posthorn_attempts_total', 'Attempts that this process recorded.', [
    'outcome',
    'error_code',
  ]);
  private readonly attemptsNotSent = this.counter(
    'posthorn_attempts_not_sent_total',
    'Attempts that nothing was sent of, by this process; the same are tried again.',
    ['cause'],
  );
  private readonly attemptDuration = new Histogram({
    name: 'posthorn_attempt_duration_seconds',
    help: 'From dialling to the last byte of the answer, or to the failure.',
    labelNames: ['outcome'],
    buckets: attemptSeconds,
    registers: this.registers,
  });
  private readonly leftToSweeper = this.counter(
    'posthorn_dispatcher_left_to_sweeper_total',
    'Jobs that the dispatcher did not take, gave up, or could not hand to Temporal.',
  );
  private readonly released = this.counter('posthorn_releaser_released_total', 'Held deliveries that were let go.');

  readonly dispatcherQueue = this.gauge(
    'posthorn_dispatcher_queue_length',
    'Jobs that wait for the dispatcher or are at work.',
  );
  readonly expressBacklog = this.gauge(
    'posthorn_express_deliveries',
    'Deliveries that wait for the express lane or are being sent by it.',
  );
  readonly poolConnections = this.gauge('posthorn_database_pool_connections', 'Connections of the pool.', ['state']);
  readonly poolWaiting = this.gauge('posthorn_database_pool_waiting', 'Statements that wait for a connection.');
  readonly slots = this.gauge('posthorn_worker_slots', 'Slots of this worker, for activities and for workflow tasks.', [
    'task_queue',
    'kind',
    'state',
  ]);

  readonly databaseUp = this.gauge('posthorn_metrics_database_up', '1 if the database could be asked, else 0.');
  readonly backlog = this.gauge('posthorn_backlog_deliveries', 'Open deliveries.', ['status']);
  readonly queueAge = this.gauge(
    'posthorn_queue_oldest_due_seconds',
    'How long the delivery that is due the longest waits for its attempt; `held`: for its turn.',
    ['status'],
  );
  readonly sweeperLag = this.gauge('posthorn_sweeper_lag_seconds', 'How long the oldest overdue delivery is overdue.');
  readonly openLetters = this.gauge('posthorn_dead_letters_open', 'Dead letters that nobody dealt with.', ['reason']);
  readonly endpoints = this.gauge('posthorn_endpoints', 'Endpoints.', ['status']);
  readonly mails = this.gauge('posthorn_notice_mails', 'Mails to owners: `pending`, and `failed` for good.', [
    'status',
  ]);
  readonly feedLag = this.gauge(
    'posthorn_event_feed_lag_seconds',
    'Since when the oldest event is accepted that GET /v1/events does not show yet.',
  );
  readonly reconciliationAge = this.gauge(
    'posthorn_reconciliation_age_seconds',
    'Since when the last reconciliation ended.',
  );
  readonly reconciliationGaps = this.gauge(
    'posthorn_reconciliation_gaps',
    'What the last reconciliation found amiss.',
    ['kind'],
  );

  /** Beside ours, those of Node and of the process. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.registry });
  }

  eventAccepted(statuses: readonly DeliveryStatus[]): void {
    this.eventsAccepted.inc();
    for (const status of statuses) {
      this.deliveriesCreated.inc({ status });
      if (status === 'cancelled') this.deliveryClosed(status, 'verification_dropped');
    }
  }

  deliveryClosed(status: DeliveryStatus, reason: DeliveryReason, count = 1): void {
    this.deliveriesClosed.inc({ status, reason }, count);
  }

  deliveryStarted(by: string): void {
    this.deliveriesStarted.inc({ by });
  }

  attemptRecorded({ outcome, errorCode, durationMs }: CountedAttempt): void {
    this.attempts.inc({ outcome, error_code: errorCode ?? 'none' });
    // Nobody knows how long one took whose sender died.
    if (errorCode !== 'outcome_unknown') this.attemptDuration.observe({ outcome }, durationMs / 1_000);
  }

  attemptNotSent(cause: string): void {
    this.attemptsNotSent.inc({ cause });
  }

  jobsLeftToSweeper(count: number): void {
    this.leftToSweeper.inc(count);
  }

  deliveriesReleased(count: number): void {
    this.released.inc(count);
  }

  private counter<Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: this.registers });
  }

  private gauge<Label extends string = never>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: this.registers });
  }
}
