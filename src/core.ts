import type { ReconcileReport } from '../activities/contracts/reconcile-activities.js';
import type { Config } from './config/config.js';
import type { EncryptionKey } from './config/key-ring.js';
import { ApiKeyStore } from './database/api-key-store.js';
import { AttemptStore } from './database/attempt-store.js';
import { isDatabaseRefused } from './database/database-errors.js';
import { createDataSource, type Database, migrate } from './database/data-source.js';
import { DeadLetterStore } from './database/dead-letter-store.js';
import type { DeliveryStore } from './database/delivery-store.js';
import { EndpointStore } from './database/endpoint-store.js';
import { PublishRules } from './database/publish-rules.js';
import { EventTypeStore } from './database/event-type-store.js';
import { EventFeedStore, prepareFeed } from './database/event-feed-store.js';
import { EventStore } from './database/event-store.js';
import { GaugeStore } from './database/gauge-store.js';
import { LeaseStore } from './database/lease-store.js';
import { LetterStore } from './database/letter-store.js';
import { NoticeStore } from './database/notice-store.js';
import { RenditionStore } from './database/rendition-store.js';
import { ReconcileStore } from './database/reconcile-store.js';
import { RetentionStore } from './database/retention-store.js';
import { StatsStore } from './database/stats-store.js';
import type { SweepStore } from './database/sweep-store.js';
import { closingBatch, type WaitingDeliveries } from './database/waiting-deliveries.js';
import type { PaceStore } from './database/pace-store.js';
import { ReplayStore } from './database/replay-store.js';
import { Releaser } from './temporal/releaser.js';
import { EndpointCaller } from './contact/endpoint-caller.js';
import { BacklogStore } from './database/backlog-store.js';
import { EndpointHealthStore } from './database/endpoint-health-store.js';
import type { AddressPolicy } from './delivery/address-policy.js';
import { readCertificates } from './delivery/ca-file.js';
import { AuthorizedSender } from './delivery/authorized-sender.js';
import { DeliveryClient } from './delivery/delivery-client.js';
import { TokenSource } from './delivery/token-source.js';
import { createMailer, type Mailer } from './mail/mailer.js';
import { activityDependencies } from './activity-dependencies.js';
import { AttemptRunner } from '../activities/attempt-runner.js';
import { idPrefixes } from './domain/ids.js';
import { ExpressLane } from './express/express-lane.js';
import { FirstAttempts } from './express/first-attempts.js';
import { pause } from './pause.js';
import { newId } from './security/new-id.js';
import { PayloadShaper } from './payload/payload-shaper.js';
import { Sandbox } from './payload/sandbox.js';
import { SecretBox } from './security/secret-box.js';
import {
  CountedDeliveries,
  CountedDispatcher,
  CountedGateway,
  CountedPaces,
  CountedSweeps,
  CountedWaiting,
} from './telemetry/counted.js';
import type { Logger } from './telemetry/logger.js';
import { Metrics } from './telemetry/metrics.js';
import { MetricsPage } from './telemetry/metrics-page.js';
import { SlotCounter } from './telemetry/slot-counter.js';
import { PassiveTracing, type Tracing } from './telemetry/tracing.js';
import { DeliveryRuns } from './temporal/delivery-runs.js';
import { TemporalAnnouncer } from './temporal/announcer.js';
import { type ConnectionKind, TemporalConnection } from './temporal/connection.js';
import type { Dispatcher } from './temporal/dispatcher.js';
import type { TemporalGateway } from './temporal/gateway.js';
import { Sweeper } from './temporal/sweeper.js';
import { within } from './within.js';

/** There is a new one every ten minutes. */
const readReportEveryMs = 2_000;

/** The configuration of a process whose engines are known: embedded ones have been started by then. */
export interface CoreOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  readonly keyRing: readonly [EncryptionKey, ...EncryptionKey[]];
  readonly connection: ConnectionKind;
  readonly log: Logger;
}

/** What API and worker share: stores, the way to Temporal, the sweeper. */
export class Core {
  readonly db: Database;
  readonly leases: LeaseStore;
  /** Null: every delivery has a workflow from the start. */
  readonly express: ExpressLane | null;
  readonly firstAttempts: FirstAttempts;
  readonly attempts: AttemptStore;
  readonly apiKeys: ApiKeyStore;
  readonly deliveries: DeliveryStore;
  readonly endpoints: EndpointStore;
  readonly events: EventStore;
  readonly eventTypes: EventTypeStore;
  readonly publishRules: PublishRules;
  readonly sandbox: Sandbox;
  readonly payloads: PayloadShaper;
  readonly feed: EventFeedStore;
  readonly stats: StatsStore;
  readonly retention: RetentionStore;
  readonly reconciliation: ReconcileStore;
  readonly deliveryRuns: DeliveryRuns;
  readonly paces: PaceStore;
  readonly replays: ReplayStore;
  readonly health: EndpointHealthStore;
  readonly notices: NoticeStore;
  readonly mailer: Mailer | null;
  readonly client: DeliveryClient;
  readonly sender: AuthorizedSender;
  readonly caller: EndpointCaller;
  readonly letters: DeadLetterStore;
  readonly letterLists: LetterStore;
  readonly sweeps: SweepStore;
  readonly waiting: WaitingDeliveries;
  readonly secrets: SecretBox;
  readonly addresses: AddressPolicy;
  readonly temporal: TemporalConnection;
  readonly gateway: TemporalGateway;
  readonly dispatcher: Dispatcher;
  readonly announcer: TemporalAnnouncer;
  readonly sweeper: Sweeper;
  readonly releaser: Releaser;
  readonly metrics = new Metrics();
  readonly metricsPage: MetricsPage;
  readonly slots = new SlotCounter();
  private report: Promise<ReconcileReport | null> = Promise.resolve(null);
  private readReportAgainAt = 0;
  /** Once started, the one that is configured. */
  tracing: Tracing = new PassiveTracing();

  constructor(readonly options: CoreOptions) {
    const { config, log } = options;
    const {
      letterExpiryMs,
      alertWindowMs,
      allowHttp,
      allowedCidrs,
      workflowTaskTimeoutMs,
      caFile,
      proxy,
      maxInFlight,
      retryShare,
      queueAgeMs,
    } = config.delivery;
    this.db = createDataSource({ url: options.databaseUrl, poolSize: config.database.poolSize });
    this.leases = new LeaseStore(this.db);
    const leaseHolder = `express/${newId(idPrefixes.leaseHolder)}`;
    this.attempts = new AttemptStore(this.db, leaseHolder);
    this.apiKeys = new ApiKeyStore(this.db);
    const { metrics } = this;
    const gauges = new GaugeStore(this.db);
    this.deliveries = new CountedDeliveries(metrics, this.db);
    this.endpoints = new EndpointStore(this.db);
    this.events = new EventStore(this.db, { unverifiedEvents: config.verification.events });
    this.eventTypes = new EventTypeStore(this.db);
    this.publishRules = new PublishRules(this.eventTypes);
    this.sandbox = new Sandbox({ timeoutMs: config.catalogue.timeoutMs, maxOutputBytes: config.http.bodyLimitBytes });
    this.payloads = new PayloadShaper(this.eventTypes, new RenditionStore(this.db), this.sandbox);
    this.feed = new EventFeedStore(this.db);
    this.stats = new StatsStore(this.db);
    this.retention = new RetentionStore(this.db, config.retention);
    this.reconciliation = new ReconcileStore(this.db, letterExpiryMs);
    this.mailer = createMailer(config.mail, config.publicUrl);
    this.notices = new NoticeStore(this.db, this.events, { mails: this.mailer !== null });
    this.health = new EndpointHealthStore(this.db, this.notices, {
      verificationExpiryMs: config.verification.expiryMs,
      rules: config.health,
      autoEnable: config.health.autoEnable,
    });
    this.letters = new DeadLetterStore(this.db, this.notices);
    this.letterLists = new LetterStore(this.db);
    this.sweeps = new CountedSweeps(metrics, this.db);
    this.paces = new CountedPaces(metrics, this.db, { retryShare, letterExpiryMs });
    this.replays = new ReplayStore(this.db, { maxItems: config.replay.maxItems });
    this.waiting = new CountedWaiting(metrics, this.db, letterExpiryMs);
    this.secrets = new SecretBox(options.keyRing);
    this.addresses = { allowHttp, allowedCidrs };
    this.client = new DeliveryClient({ ...this.addresses, extraCa: readCertificates(caFile), proxy });
    const tokens = new TokenSource({
      client: this.client,
      record: (report) =>
        this.health.recordToken(report).catch((error: unknown) => {
          log.warn({ endpoint_id: report.endpointId, err: error }, 'a request for a token is not recorded');
        }),
    });
    this.sender = new AuthorizedSender({ client: this.client, tokens });
    const { publicHost, publicUrl } = config;
    this.caller = new EndpointCaller({
      store: this.health,
      sender: this.sender,
      secrets: this.secrets,
      settings: { publicHost, publicUrl, maxInFlight },
      now: Date.now,
    });
    this.temporal = new TemporalConnection(
      options.connection,
      { address: options.temporalAddress, namespace: config.temporal.namespace },
      log,
    );
    this.deliveryRuns = new DeliveryRuns(this.temporal);
    this.gateway = new CountedGateway(metrics, this.temporal, log, { alertWindowMs, workflowTaskTimeoutMs });
    this.dispatcher = new CountedDispatcher(metrics, this.gateway, (id, round) => this.sweeps.woken(id, round), log);
    this.announcer = new TemporalAnnouncer(this.gateway, log);
    this.express =
      config.delivery.firstAttempt === 'express'
        ? new ExpressLane({
            holder: leaseHolder,
            attempts: new AttemptRunner(activityDependencies(this)),
            leases: this.leases,
            limits: {
              waiting: config.delivery.expressQueue,
              atOnce: config.delivery.maxConcurrentAttempts,
              // Half of what the endpoint takes: the other half is left to its workflows.
              atOncePerEndpoint: Math.max(1, Math.floor(maxInFlight / 2)),
            },
            dispatch: (job) => void this.dispatcher.submit(job),
            log,
          })
        : null;
    this.firstAttempts = new FirstAttempts(
      this.dispatcher,
      this.express,
      options.connection === 'native' ? this.attempts : null,
    );
    this.releaser = new Releaser({
      paces: this.paces,
      sweeps: this.sweeps,
      backlogs: new BacklogStore(this.db, this.notices, config.backlog),
      dispatcher: this.dispatcher,
      queueAgeMs,
      letterAdded: (endpointId) => this.announcer.letterAdded(endpointId),
      log,
    });
    this.sweeper = new Sweeper({
      store: this.sweeps,
      waiting: this.waiting,
      health: this.health,
      replays: this.replays,
      gateway: this.gateway,
      housekeeping: async () => {
        await this.events.forgetOldKeys();
        await this.leases.forgetDead();
        await this.letterLists.expireLetters(closingBatch);
      },
      log,
    });
    this.metricsPage = new MetricsPage(metrics, {
      dispatcherBacklog: () => this.dispatcher.backlog,
      expressBacklog: () => this.express?.backlog ?? 0,
      pool: () => gauges.poolUse(),
      slots: () => this.slots.read(),
      database: () => gauges.read(),
      feedLagMs: () => this.feed.lagMs(),
      reconciliation: () => this.reconciliation.lastReport(),
      now: Date.now,
    });
  }

  /** Begins to find what nobody works on, and to let go what waits for its turn. */
  startSweeping(): void {
    this.sweeper.start();
    this.releaser.start();
    this.express?.start();
  }

  /** Connects to Postgres, for as long as it takes, and brings the schema up to date. Temporal is connected in the background. */
  async start(): Promise<void> {
    const { config, log } = this.options;
    if (config.tracing.url !== null) {
      const { OtelTracing } = await import('./telemetry/otel-tracing.js');
      this.tracing = new OtelTracing({ url: config.tracing.url, serviceName: config.tracing.serviceName, log });
    }
    for (let waitMs = 250; ; waitMs = Math.min(waitMs * 2, 5_000)) {
      try {
        if (!this.db.isInitialized) await this.db.initialize();
        await migrate(this.db, async () => {
          const { epoch, raised } = await prepareFeed(this.db);
          if (raised) log.warn({ epoch }, 'the database was restored: the order of events begins a new epoch');
        });
        break;
      } catch (error) {
        // Waiting mends neither a wrong password nor a missing database.
        if (isDatabaseRefused(error)) throw error;
        log.warn({ err: error }, 'Postgres is away; trying again');
        await pause(waitMs);
      }
    }
    void this.temporal.connect();
  }

  databaseAnswers(timeoutMs = 1_000): Promise<boolean> {
    const answered = this.db.query('select 1').then(
      () => true,
      () => false,
    );
    return within(timeoutMs, answered, false);
  }

  /**
   * The last report, for `/readyz`; null where there is none, or the database doesn't answer in time. However often somebody asks,
   * it is read once in {@link readReportEveryMs}.
   */
  lastReconciliation(timeoutMs = 1_000): Promise<ReconcileReport | null> {
    if (Date.now() >= this.readReportAgainAt) {
      this.readReportAgainAt = Date.now() + readReportEveryMs;
      this.report = within(
        timeoutMs,
        this.reconciliation.lastReport().catch(() => null),
        null,
      );
    }
    return this.report;
  }

  /** After HTTP, before the workers: nothing new is started. */
  async stopStarting(): Promise<void> {
    await this.express?.stop();
    await Promise.all([this.dispatcher.stop(), this.sweeper.stop(), this.releaser.stop()]);
  }

  /** Last, when nothing needs the stores any more. */
  async close(): Promise<void> {
    await this.announcer.stop();
    this.mailer?.close();
    await this.tracing.stop();
    await this.client.close();
    await this.sandbox.close();
    await this.temporal.close();
    if (this.db.isInitialized) await this.db.destroy();
  }
}
