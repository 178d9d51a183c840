import { createHash, randomUUID } from 'node:crypto';
import { expect, inject } from 'vitest';
import { AttemptRunner, type Lane } from '../../../activities/attempt-runner.js';
import type { AttemptInput, AttemptOutcome } from '../../../activities/contracts/delivery-activities.js';
import type { ActivityDependencies, AttemptSettings, AttemptWatch, Sender } from '../../../activities/ports.js';
import { parseCidr } from '../../../src/config/cidr.js';
import { parseKeyRing } from '../../../src/config/key-ring.js';
import type { AttemptRecord } from '../../../src/database/attempt-rows.js';
import { AttemptStore } from '../../../src/database/attempt-store.js';
import { createDataSource, type Database, migrate } from '../../../src/database/data-source.js';
import { DeadLetterStore } from '../../../src/database/dead-letter-store.js';
import { DeliveryStore } from '../../../src/database/delivery-store.js';
import { EndpointHealthStore } from '../../../src/database/endpoint-health-store.js';
import { EndpointStore } from '../../../src/database/endpoint-store.js';
import { EventStore, type NewEvent } from '../../../src/database/event-store.js';
import { PaceStore } from '../../../src/database/pace-store.js';
import { NoticeStore } from '../../../src/database/notice-store.js';
import { type ClosedDelivery, WaitingDeliveries } from '../../../src/database/waiting-deliveries.js';
import { EventTypeStore } from '../../../src/database/event-type-store.js';
import { RenditionStore } from '../../../src/database/rendition-store.js';
import { DeliveryClient } from '../../../src/delivery/delivery-client.js';
import { PayloadShaper } from '../../../src/payload/payload-shaper.js';
import { Sandbox } from '../../../src/payload/sandbox.js';
import { newId } from '../../../src/security/new-id.js';
import { SecretBox } from '../../../src/security/secret-box.js';
import { createTestDatabase } from '../../support/engines.js';
import { testKeyRing } from '../../support/posthorn.js';

const nothing = (): void => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };
export const day = 86_400_000;

/** A wait as the database counts it: its times are whole milliseconds, so it may differ by one. */
export const about = (ms: number): number => expect.closeTo(ms, -1);

/** A delivery as its tables have it, beside what a test needs to try it. */
export interface StoredDelivery {
  readonly id: string;
  readonly endpointId: string;
  readonly eventId: string;
}

/** An event as the store takes it; its other fields are what most events have. */
export function newEvent(type: string, changes: Partial<NewEvent> = {}): NewEvent {
  return {
    id: newId('evt_'),
    tenantId: 'default',
    type,
    source: null,
    subject: null,
    apiVersion: null,
    data: '1',
    createdAt: null,
    bodyHash: createHash('sha256').update(randomUUID()).digest(),
    ...changes,
  };
}

/** The attempt runner with its real stores on a database of its own, and the real client. */
export class Attempts {
  readonly db: Database;
  readonly store: AttemptStore;
  readonly deliveries: DeliveryStore;
  readonly endpoints: EndpointStore;
  readonly events: EventStore;
  readonly waiting: WaitingDeliveries;
  readonly letters: DeadLetterStore;
  readonly health: EndpointHealthStore;
  readonly notices: NoticeStore;
  readonly paces: PaceStore;
  readonly client = new DeliveryClient({ allowHttp: 'loopback', allowedCidrs: [parseCidr('127.0.0.0/8')] });
  readonly sandbox = new Sandbox({ timeoutMs: 250, maxOutputBytes: 65_536 });
  readonly runner: AttemptRunner;
  /** What Temporal was told. */
  readonly told: { letters: string[]; closed: ClosedDelivery[]; changed: string[] } = {
    letters: [],
    closed: [],
    changed: [],
  };
  settings: AttemptSettings = {
    retryWaitsMs: null,
    refusedWaitMs: 30 * 60_000,
    letterExpiryMs: 30 * day,
    maxInFlight: 64,
  };
  private readonly secrets = new SecretBox(parseKeyRing(testKeyRing));

  private constructor(
    readonly databaseUrl: string,
    sender?: Sender,
  ) {
    this.db = createDataSource({ url: databaseUrl, poolSize: 30 });
    this.store = new AttemptStore(this.db);
    this.deliveries = new DeliveryStore(this.db);
    this.endpoints = new EndpointStore(this.db);
    this.events = new EventStore(this.db, { unverifiedEvents: 'hold' });
    this.waiting = new WaitingDeliveries(this.db, this.settings.letterExpiryMs);
    this.notices = new NoticeStore(this.db, this.events, { mails: true });
    this.letters = new DeadLetterStore(this.db, this.notices);
    this.paces = new PaceStore(this.db, { retryShare: 0.5, letterExpiryMs: this.settings.letterExpiryMs });
    this.health = new EndpointHealthStore(this.db, this.notices, {
      verificationExpiryMs: 3 * day,
      rules: { warnAfterMs: [day, 3 * day], disableAfterMs: 7 * day, expiryNoticeMs: 7 * day },
      autoEnable: true,
    });
    this.runner = this.newRunner(sender);
  }

  static async start(options: { databaseUrl?: string; sender?: Sender } = {}): Promise<Attempts> {
    const attempts = new Attempts(
      options.databaseUrl ?? (await createTestDatabase(inject('postgresUrl'))),
      options.sender,
    );
    await attempts.db.initialize();
    await migrate(attempts.db);
    return attempts;
  }

  /** A runner with nothing in flight, as after a restart of its process. */
  newRunner(
    sender: Sender = this.client,
    watch?: AttemptWatch,
    log: ActivityDependencies['log'] = silent,
  ): AttemptRunner {
    const dependencies: Omit<ActivityDependencies, 'settings'> = {
      attempts: this.store,
      deliveries: this.deliveries,
      waiting: this.waiting,
      letters: this.letters,
      sender,
      payloads: new PayloadShaper(new EventTypeStore(this.db), new RenditionStore(this.db), this.sandbox),
      announcer: {
        letterAdded: async (endpointId) => void this.told.letters.push(endpointId),
        endpointChanged: async (endpointId) => void this.told.changed.push(endpointId),
        deliveriesClosed: (closed) => void this.told.closed.push(...closed),
        cancelRun: async () => undefined,
      },
      health: this.health,
      notices: this.notices,
      mailer: null,
      paces: this.paces,
      caller: null as never,
      retention: null as never,
      reconciliation: null as never,
      deliveryRuns: null as never,
      replays: null as never,
      starter: null as never,
      secrets: this.secrets,
      log,
      ...(watch && { watch }),
      now: Date.now,
    };
    const settings = (): AttemptSettings => this.settings;
    return new AttemptRunner({
      ...dependencies,
      get settings() {
        return settings();
      },
    });
  }

  async sql<T = Record<string, unknown>>(statement: string, values: unknown[] = []): Promise<T[]> {
    return this.db.query<T[]>(statement, values);
  }

  async createEndpoint(url: string, changes: { retryWaitsMs?: number[]; timeoutMs?: number } = {}): Promise<string> {
    const id = newId('we_');
    await this.endpoints.create({
      id,
      tenantId: 'default',
      url,
      // Only events published for it reach it.
      events: [`only.${id.toLowerCase()}`],
      description: null,
      profile: 'default',
      timeoutMs: changes.timeoutMs ?? 5_000,
      retryWaitsMs: changes.retryWaitsMs ?? null,
      sealedSecret: this.secrets.seal('whsec_dGVzdA==', id),
    });
    return id;
  }

  async publishTo(endpointId: string, count = 1): Promise<StoredDelivery[]> {
    const events = Array.from({ length: count }, () =>
      newEvent(`only.${endpointId.toLowerCase()}`, { data: '{"card":4242}' }),
    );
    const results = await this.events.publish(events);
    return results.flatMap((result) =>
      result.kind === 'accepted'
        ? result.deliveries.map(({ id, eventId }) => ({ id, eventId, endpointId: result.deliveries[0]!.endpointId }))
        : [],
    );
  }

  /** One delivery to a new endpoint. */
  async publish(url: string, changes: Parameters<Attempts['createEndpoint']>[1] = {}): Promise<StoredDelivery> {
    const [delivery] = await this.publishTo(await this.createEndpoint(url, changes));
    return delivery!;
  }

  input(delivery: { readonly id: string }, changes: Partial<AttemptInput> = {}): AttemptInput {
    return {
      deliveryId: delivery.id,
      runId: 'run-1',
      sequence: 1,
      jitterFactor: 1,
      intent: 'resume',
      force: false,
      ...changes,
    };
  }

  attempt(
    delivery: { readonly id: string },
    changes: Partial<AttemptInput> = {},
    lane: Lane = 'ordinary',
  ): Promise<AttemptOutcome> {
    return this.runner.run(this.input(delivery, changes), lane);
  }

  // Rows have many shapes; the expectations are the check.
  // oxlint-disable-next-line typescript/no-explicit-any
  async row(delivery: { readonly id: string }): Promise<any> {
    const [row] = await this.sql('select * from deliveries where id = $1', [delivery.id]);
    return row;
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async endpoint(id: string): Promise<any> {
    const [row] = await this.sql('select *, xmin::text as written_by from endpoints where id = $1', [id]);
    return row;
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async recorded(delivery: { readonly id: string }): Promise<any[]> {
    return this.sql('select * from attempts where delivery_id = $1 order by number', [delivery.id]);
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async lettersOf(delivery: { readonly id: string }): Promise<any[]> {
    return this.sql('select * from dead_letters where delivery_id = $1 order by round', [delivery.id]);
  }

  /** An attempt as the runner would hand it to the store. */
  record(delivery: { readonly id: string }, changes: Partial<AttemptRecord> = {}): AttemptRecord {
    return {
      id: newId('att_'),
      deliveryId: delivery.id,
      runId: 'run-1',
      sequence: 1,
      round: 1,
      startedAt: new Date(),
      durationMs: 20,
      statusCode: 200,
      errorCode: null,
      errorMessage: null,
      responseHeaders: [],
      responseBody: Buffer.alloc(0),
      responseTruncated: false,
      remoteAddress: '127.0.0.1',
      resent: false,
      outcome: 'delivered',
      gone: false,
      refused: false,
      waitMs: 60_000,
      probeRestMs: 5_000,
      restMs: null,
      letterExpiryMs: 30 * day,
      ...changes,
    };
  }

  failure(delivery: { readonly id: string }, changes: Partial<AttemptRecord> = {}): AttemptRecord {
    return this.record(delivery, { statusCode: 500, errorCode: 'http_status', outcome: 'failed', ...changes });
  }

  async stop(): Promise<void> {
    await this.client.close();
    await this.sandbox.close();
    if (this.db.isInitialized) await this.db.destroy();
  }
}
