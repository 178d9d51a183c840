import { createActivities, type ActivityFamilies } from '../../activities/index.js';
import type {
  AttemptInput,
  AttemptKey,
  CancelInput,
  CancelOutcome,
} from '../../activities/contracts/delivery-activities.js';
import type { ActivityDependencies, AttemptSettings } from '../../activities/ports.js';
import type {
  AttemptRecord,
  AttemptRowOutcome,
  LoadedDelivery,
  RecordResult,
} from '../../src/database/attempt-rows.js';
import type { OutboundAnswer } from '../../src/delivery/delivery-client.js';
import type { OutboundRequest } from '../../src/delivery/outbound.js';
import {
  type AttemptErrorCode,
  type DeliveryReason,
  type DeliveryStatus,
  isTerminal,
} from '../../src/domain/closed-lists.js';
import { idPrefixes } from '../../src/domain/ids.js';
import { newId } from '../../src/security/new-id.js';

const nothing = (): void => undefined;

/** What the endpoint says to one request: a status, more than that, or something to wait for first. */
export type ScriptedAnswer = number | AnswerFacts | ((request: OutboundRequest) => Promise<number | AnswerFacts>);

export interface AnswerFacts {
  readonly status: number | null;
  readonly errorCode?: AttemptErrorCode;
  readonly retryAfter?: string;
  readonly durationMs?: number;
  readonly noSlot?: true;
}

/** How the process that executes an attempt ends: with the request out and nothing recorded, or with all recorded. */
export type Death = 'before recording' | 'after recording';

interface ModelAttempt {
  readonly runId: string;
  readonly sequence: number;
  readonly number: number;
  readonly round: number;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly outcome: AttemptRowOutcome;
  /** By the model's clock, and the wait that followed. */
  readonly recordedAtMs: number;
  readonly waitMs: number | null;
}

export interface ModelRow {
  status: DeliveryStatus;
  reason: DeliveryReason;
  round: number;
  attemptCount: number;
  roundAttempts: number;
  nextAttemptAtMs: number | null;
  wakeRequested: boolean;
  lastStatusCode: number | null;
  lastError: string | null;
}

export interface ModelEndpoint {
  status: LoadedDelivery['endpoint']['status'];
  deleted: boolean;
  quick: boolean;
  succeededBefore: boolean;
  notBeforeMs: number | null;
  retryWaitsMs: readonly number[] | null;
}

/** One delivery of the model, with what its endpoint answers and what goes wrong on our side. */
export class ModelDelivery {
  readonly id = newId(idPrefixes.delivery);
  readonly endpointId = newId(idPrefixes.endpoint);
  readonly eventId = newId(idPrefixes.event);
  readonly row: ModelRow;
  readonly endpoint: ModelEndpoint;
  readonly attempts: ModelAttempt[] = [];
  readonly letters: { readonly round: number; readonly reason: DeliveryReason }[] = [];
  /** Requests that left the machine, by the model's clock. */
  readonly sentAtMs: number[] = [];
  /** Runs of `recordAttempt`, failed ones too. */
  recordings = 0;
  /** So many of the next reads or writes find the database away. */
  loadFailures = 0;
  recordFailures = 0;
  /** Deaths of the next executions of attempt activities, in order; `null` lives. */
  readonly deaths: (Death | null)[] = [];

  constructor(
    readonly answers: ScriptedAnswer[],
    row: Partial<ModelRow>,
    endpoint: Partial<ModelEndpoint>,
  ) {
    this.row = {
      status: 'pending',
      reason: 'published',
      round: 1,
      attemptCount: 0,
      roundAttempts: 0,
      nextAttemptAtMs: null,
      wakeRequested: false,
      lastStatusCode: null,
      lastError: null,
      ...row,
    };
    this.endpoint = {
      status: 'active',
      deleted: false,
      quick: true,
      succeededBefore: false,
      notBeforeMs: null,
      retryWaitsMs: null,
      ...endpoint,
    };
  }

  get start() {
    const { id, endpointId, eventId } = this;
    return { id, endpointId, eventId, tenantId: 'default', type: 'invoice.paid', url: 'https://hooks.example.com/in' };
  }

  /** What POST …/cancel writes. */
  cancelRow(): void {
    Object.assign(this.row, { status: 'cancelled', reason: 'cancelled_by_request', nextAttemptAtMs: null });
  }

  /** What POST …/redeliver writes on a closed row. */
  openNextRound(nowMs: number, reason: DeliveryReason = 'redelivery_requested'): void {
    Object.assign(this.row, {
      status: 'pending',
      reason,
      round: this.row.round + 1,
      roundAttempts: 0,
      nextAttemptAtMs: nowMs,
      wakeRequested: true,
    });
  }
}

/**
 * Postgres and the endpoints, in memory, under the real attempt runner: what the SQL statements do, row by row.
 * test/integration/attempts/model.test.ts holds it to the real ones.
 */
export class DeliveryModel {
  private readonly deliveries = new Map<string, ModelDelivery>();
  readonly families: ActivityFamilies;
  /** Announcements of the dead-letter queue: what each found. */
  readonly announced: { readonly endpointId: string; readonly letters: number; readonly atMs: number }[] = [];
  readonly unannounced = new Map<string, number>();
  settings: AttemptSettings = {
    retryWaitsMs: null,
    refusedWaitMs: 30 * 60_000,
    letterExpiryMs: 30 * 86_400_000,
    maxInFlight: 64,
  };

  constructor(
    readonly nowMs: () => Promise<number>,
    private readonly cancelRun: (deliveryId: string, runId: string) => Promise<void>,
  ) {
    const runner = createActivities(this.dependencies());
    this.families = {
      deliver: { firstAttempt: (input) => this.mortal(input, () => runner.deliver.firstAttempt(input)) },
      attempts: {
        ...runner.attempts,
        attempt: (input) => this.mortal(input, () => runner.attempts.attempt(input)),
      },
      control: {
        ...runner.control,
        recordAttempt: (input) => {
          this.of(input.deliveryId).recordings += 1;
          return runner.control.recordAttempt(input);
        },
      },
    };
  }

  add(
    answers: ScriptedAnswer[] = [200],
    row: Partial<ModelRow> = {},
    endpoint: Partial<ModelEndpoint> = {},
  ): ModelDelivery {
    const delivery = new ModelDelivery(answers, row, endpoint);
    this.deliveries.set(delivery.id, delivery);
    return delivery;
  }

  private of(id: string): ModelDelivery {
    const delivery = this.deliveries.get(id);
    if (!delivery) throw new Error(`the model has no ${id}`);
    return delivery;
  }

  /** A process that dies with its request out has sent it; Temporal only sees that the activity failed. */
  private async mortal<T>(input: AttemptInput, attempt: () => Promise<T>): Promise<T> {
    const delivery = this.deliveries.get(input.deliveryId);
    const death = delivery?.deaths.shift();
    if (death === 'before recording') delivery!.sentAtMs.push(await this.nowMs());
    else {
      const outcome = await attempt();
      if (!death) return outcome;
    }
    throw new Error('the process has died');
  }

  /** What stands in for the stores. */
  get stores() {
    return {
      attempts: this.attemptStore(),
      deliveries: { cancelFromWorkflow: (input: CancelInput) => this.cancelFromWorkflow(input) },
      waiting: { closeOne: (id: string) => this.closeOne(id), closeAllOf: async () => 0 },
      letters: { announce: (endpointId: string) => this.announce(endpointId) },
    };
  }

  private dependencies(): ActivityDependencies {
    const modelled = {
      ...this.stores,
      sender: { send: (request: OutboundRequest) => this.send(request) },
      payloads: { shape: async ({ event }: LoadedDelivery) => event },
      announcer: {
        letterAdded: async () => undefined,
        endpointChanged: async () => undefined,
        deliveriesClosed: nothing,
        cancelRun: this.cancelRun,
      },
      secrets: { open: () => 'a secret of the model' },
      log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
      now: Date.now,
    };
    return Object.defineProperty(modelled, 'settings', {
      get: () => this.settings,
    }) as unknown as ActivityDependencies;
  }

  /** Never rejects, as the real one. */
  private async send(request: OutboundRequest): Promise<OutboundAnswer> {
    const delivery = this.of(String((request.headers as Record<string, string>)['Webhook-Id']));
    const scripted = delivery.answers.shift() ?? 200;
    const startedAt = new Date();
    const sentAtMs = await this.nowMs();
    const isNoSlot = typeof scripted === 'object' && scripted.noSlot === true;
    if (!isNoSlot) delivery.sentAtMs.push(sentAtMs);
    const said = typeof scripted === 'function' ? await scripted(request) : scripted;
    const facts: AnswerFacts = typeof said === 'number' ? { status: said } : said;
    const ok = facts.status !== null && facts.status >= 200 && facts.status <= 299;
    return {
      startedAt,
      durationMs: facts.durationMs ?? 5,
      statusCode: facts.status,
      errorCode: facts.errorCode ?? (ok ? null : 'http_status'),
      errorMessage: null,
      responseHeaders: facts.retryAfter === undefined ? [] : [['Retry-After', facts.retryAfter]],
      responseBody: Buffer.alloc(0),
      responseTruncated: false,
      remoteAddress: '192.0.2.1',
      resent: false,
      dialled: !isNoSlot,
      ...(isNoSlot ? { noSlot: true } : {}),
    };
  }

  /** The statements of AttemptStore. */
  attemptStore() {
    return {
      load: async (key: AttemptKey): Promise<LoadedDelivery | null> => {
        const nowMs = await this.nowMs();
        const delivery = this.deliveries.get(key.deliveryId);
        if (!delivery) return null;
        if (delivery.loadFailures > 0) {
          delivery.loadFailures -= 1;
          throw new Error('the database is away');
        }
        return loaded(delivery, key, nowMs);
      },
      record: async (attempt: AttemptRecord): Promise<RecordResult | null> => {
        const nowMs = await this.nowMs();
        const delivery = this.of(attempt.deliveryId);
        if (delivery.recordFailures > 0) {
          delivery.recordFailures -= 1;
          throw new Error('the database is away');
        }
        const result = recorded(delivery, attempt, nowMs);
        if (result?.letter) this.addLetters(delivery.endpointId, 1);
        return result;
      },
      waitForEndpoint: async (deliveryId: string): Promise<void> => {
        const { row, endpoint } = this.of(deliveryId);
        const open = row.status === 'pending' || row.status === 'retrying';
        if (!open || row.wakeRequested || (endpoint.notBeforeMs ?? 0) <= (row.nextAttemptAtMs ?? 0)) return;
        row.nextAttemptAtMs = endpoint.notBeforeMs;
        row.reason = 'retry_after';
      },
      openNextRound: async (deliveryId: string, round: number, reason: DeliveryReason): Promise<void> => {
        const nowMs = await this.nowMs();
        const delivery = this.of(deliveryId);
        if (delivery.row.round === round && isTerminal(delivery.row.status)) delivery.openNextRound(nowMs, reason);
      },
    };
  }

  private async closeOne(id: string) {
    const { row, endpoint, letters, endpointId } = this.of(id);
    const open = row.status === 'pending' || row.status === 'retrying';
    if ((!endpoint.deleted && endpoint.status === 'active') || !open) return null;
    row.nextAttemptAtMs = null;
    row.wakeRequested = false;
    if (endpoint.deleted) Object.assign(row, { status: 'cancelled', reason: 'endpoint_deleted' });
    else if (endpoint.status === 'disabled') {
      Object.assign(row, { status: 'failed', reason: 'endpoint_disabled' });
      letters.push({ round: row.round, reason: row.reason });
      this.addLetters(endpointId, 1);
    } else Object.assign(row, { status: 'held', reason: 'endpoint_paused' });
    return { id, status: row.status };
  }

  private async cancelFromWorkflow({
    deliveryId,
    runId,
    round: ofRun,
    requestedRound,
  }: CancelInput): Promise<CancelOutcome> {
    const delivery = this.deliveries.get(deliveryId);
    if (!delivery) return { kind: 'unknown_delivery' };
    const rounds = delivery.attempts.filter((attempt) => attempt.runId === runId).map((attempt) => attempt.round);
    const mine = requestedRound ?? (rounds.length > 0 ? Math.max(...rounds) : ofRun || delivery.row.round);
    if (!isTerminal(delivery.row.status) && delivery.row.round <= mine) delivery.cancelRow();
    const { status, reason, round, attemptCount, lastStatusCode, lastError } = delivery.row;
    if (!isTerminal(status)) return { kind: 'superseded' };
    const labels = {
      tenantId: 'default',
      endpointId: delivery.endpointId,
      eventType: 'invoice.paid',
      eventId: delivery.eventId,
    };
    return { kind: 'closed', status, reason, round, attemptCount, lastStatusCode, lastError, labels };
  }

  addLetters(endpointId: string, count: number): void {
    this.unannounced.set(endpointId, (this.unannounced.get(endpointId) ?? 0) + count);
  }

  private async announce(endpointId: string) {
    const letters = this.unannounced.get(endpointId) ?? 0;
    this.unannounced.delete(endpointId);
    this.announced.push({ endpointId, letters, atMs: await this.nowMs() });
    const open = this.announced
      .filter((announcement) => announcement.endpointId === endpointId)
      .reduce((sum, announcement) => sum + announcement.letters, 0);
    return { announced: letters, open };
  }
}

function loaded(delivery: ModelDelivery, key: AttemptKey, nowMs: number): LoadedDelivery {
  const { row, endpoint, attempts } = delivery;
  const same = attempts.find((attempt) => attempt.runId === key.runId && attempt.sequence === key.sequence);
  return {
    id: delivery.id,
    tenantId: 'default',
    endpointId: delivery.endpointId,
    eventId: delivery.eventId,
    type: 'invoice.paid',
    ...row,
    mustAsk: false,
    lease: 'none',
    slot: null,
    dueInMs: row.nextAttemptAtMs === null ? 0 : row.nextAttemptAtMs - nowMs,
    restsForMs: endpoint.notBeforeMs === null ? 0 : endpoint.notBeforeMs - nowMs,
    event: {
      createdAt: new Date(0),
      apiVersion: null,
      source: null,
      subject: null,
      data: '{"card":"a payload of the model"}',
      typeRules: null,
    },
    endpoint: {
      url: 'https://hooks.example.com/in',
      status: endpoint.status,
      statusReason: null,
      deleted: endpoint.deleted,
      profile: 'default',
      envelope: null,
      signature: null,
      payload: 'full',
      timeoutMs: null,
      maxInFlight: null,
      sealedHeaders: null,
      sealedCredentials: null,
      sealedClientCertificate: null,
      retryWaitsMs: endpoint.retryWaitsMs,
      quick: endpoint.quick,
      succeededBefore: endpoint.succeededBefore,
      sealedSecrets: ['sealed'],
      apiVersion: 'newest',
    },
    runHasAttempts: attempts.some((attempt) => attempt.runId === key.runId),
    recorded: same ? { ...same, errorMessage: null } : null,
  };
}

function recorded(delivery: ModelDelivery, attempt: AttemptRecord, nowMs: number): RecordResult | null {
  const { row, endpoint, attempts, letters } = delivery;
  if (attempts.some(({ runId, sequence }) => runId === attempt.runId && sequence === attempt.sequence)) return null;
  const delivered = attempt.outcome === 'delivered';
  const wasClosed = isTerminal(row.status);
  row.attemptCount += 1;
  row.lastStatusCode = attempt.statusCode;
  row.lastError = delivered ? null : (attempt.errorMessage ?? attempt.errorCode);
  let letter = false;
  if (row.round === attempt.round) {
    row.roundAttempts += 1;
    row.wakeRequested = false;
    if (delivered) Object.assign(row, { status: 'succeeded', reason: 'delivered', nextAttemptAtMs: null });
    else if (wasClosed) row.nextAttemptAtMs = null;
    else if (attempt.gone || attempt.waitMs === null) {
      const reason = attempt.gone ? 'endpoint_gone' : 'attempts_exhausted';
      Object.assign(row, { status: 'failed', reason, nextAttemptAtMs: null });
    } else {
      row.nextAttemptAtMs = row.status === 'held' ? null : nowMs + attempt.waitMs;
      if (row.status !== 'held') {
        Object.assign(row, {
          status: 'retrying',
          reason: attempt.restMs === null ? 'attempt_failed' : 'retry_after',
        });
      }
    }
    if (row.status === 'failed' && !letters.some(({ round }) => round === row.round)) {
      letters.push({ round: row.round, reason: row.reason });
      letter = true;
    }
  }
  endpoint.quick = delivered && attempt.durationMs < 1_000;
  if (delivered) {
    endpoint.succeededBefore = true;
    endpoint.notBeforeMs = null;
  } else if (attempt.restMs !== null) {
    endpoint.notBeforeMs = Math.max(endpoint.notBeforeMs ?? 0, nowMs + attempt.restMs);
  }
  if (attempt.gone) endpoint.status = 'disabled';
  const waitMs = row.nextAttemptAtMs === null ? 0 : Math.max(0, Math.ceil(row.nextAttemptAtMs - nowMs));
  attempts.push({
    runId: attempt.runId,
    sequence: attempt.sequence,
    number: row.attemptCount,
    round: attempt.round,
    statusCode: attempt.statusCode,
    errorCode: attempt.errorCode,
    outcome: attempt.outcome,
    recordedAtMs: nowMs,
    waitMs: row.nextAttemptAtMs === null ? null : waitMs,
  });
  const { status, reason, round, attemptCount, roundAttempts, lastStatusCode, lastError } = row;
  return {
    status,
    reason,
    round,
    attemptCount,
    roundAttempts,
    number: attemptCount,
    waitMs,
    lastStatusCode,
    lastError,
    letter,
    endpointGone: attempt.gone,
    healthChanged: false,
  };
}

/** An answer that a test gives when it wants to; `arrived` resolves once the request is out. */
export function heldAnswer(): {
  readonly answer: ScriptedAnswer;
  readonly arrived: Promise<void>;
  readonly give: (facts: number | AnswerFacts) => void;
} {
  let give!: (facts: number | AnswerFacts) => void;
  let arrive!: () => void;
  const given = new Promise<number | AnswerFacts>((resolve) => (give = resolve));
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  return {
    give,
    arrived,
    answer: () => {
      arrive();
      return given;
    },
  };
}
