import { createEndpointCallActivities, createHealthActivities } from '../../activities/endpoint-health.js';
import type { ActivityDependencies } from '../../activities/ports.js';
import type { CallReport } from '../../src/contact/endpoint-caller.js';
import type { PlanRow } from '../../src/database/endpoint-health-store.js';
import type { EndpointStatus, NoticeType } from '../../src/domain/closed-lists.js';
import {
  type EndpointFacts,
  type HealthRules,
  type HealthTask,
  planEndpoint,
  warningStage,
} from '../../src/domain/endpoint-plan.js';
import { idPrefixes } from '../../src/domain/ids.js';
import { probeForMs, probeWaitMs } from '../../src/domain/probing.js';
import { verificationOffsetMs } from '../../src/domain/verification.js';
import { newId } from '../../src/security/new-id.js';

const nothing = (): void => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const hour = 3_600_000;
const day = 24 * hour;

export interface ModelNotice {
  readonly type: NoticeType;
  readonly episode: string;
  readonly atMs: number;
}

interface Check {
  startedAtMs: number;
  tries: number;
  nextAtMs: number | null;
  passed: boolean;
}

/** One endpoint of the model: its row, what it says to calls, and what became of it. */
export class ModelHealth {
  readonly id = newId(idPrefixes.endpoint);
  status: EndpointStatus = 'active';
  statusReason: string | null = null;
  statusChangedAtMs: number;
  failingSinceMs: number | null = null;
  refusedSinceMs: number | null = null;
  lastSuccessAtMs: number | null = null;
  expiresAtMs: number | null = null;
  verification: Check;
  probe: Check | null = null;
  version = 1;
  deleted = false;
  /** Whether it answers calls as it should. */
  answers = false;
  readonly notices: ModelNotice[] = [];
  readonly calls: { readonly way: 'challenge' | 'ping'; readonly atMs: number }[] = [];
  /** How often its workflow read it. */
  plans = 0;
  /** So many of the next writes die after their transaction. */
  deaths = 0;

  constructor(nowMs: number) {
    this.statusChangedAtMs = nowMs;
    this.verification = { startedAtMs: nowMs, tries: 0, nextAtMs: null, passed: true };
  }

  get told(): NoticeType[] {
    return this.notices.map(({ type }) => type);
  }

  /** What the record of an attempt writes. */
  attempt(result: 'delivered' | 'failed' | 'refused' | 'gone', nowMs: number): void {
    this.version += 1;
    if (result === 'delivered') {
      Object.assign(this, { failingSinceMs: null, refusedSinceMs: null, lastSuccessAtMs: nowMs });
      return;
    }
    this.failingSinceMs ??= nowMs;
    if (result === 'refused') this.refusedSinceMs ??= nowMs;
    if (result === 'gone') this.change('disabled', 'gone', nowMs);
  }

  change(status: EndpointStatus, reason: string | null, nowMs: number): void {
    Object.assign(this, { status, statusReason: reason, statusChangedAtMs: nowMs });
  }
}

/**
 * Postgres and the endpoints, in memory, under the real activities and the real plan: what the statements of
 * EndpointHealthStore do. test/integration/health holds the real ones to the same.
 */
export class EndpointModel {
  private readonly endpoints = new Map<string, ModelHealth>();
  readonly rules: HealthRules = { warnAfterMs: [day, 3 * day], disableAfterMs: 7 * day, expiryNoticeMs: 7 * day };
  readonly verificationExpiryMs = 3 * day;
  /** Endpoints whose waiting deliveries were closed. */
  readonly closed: string[] = [];
  readonly activities;

  constructor(private readonly nowMs: () => Promise<number>) {
    const dependencies = {
      health: this.store(),
      caller: this.caller(),
      waiting: { closeAllOf: async (id: string) => (this.closed.push(id), 0) },
      announcer: { letterAdded: async () => undefined, deliveriesClosed: nothing },
      notices: { giveUpMails: async () => undefined },
      mailer: null,
      log: silent,
    } as unknown as ActivityDependencies;
    this.activities = {
      control: createHealthActivities(dependencies),
      attempts: createEndpointCallActivities(dependencies),
    };
  }

  async add(changes: Partial<ModelHealth> = {}): Promise<ModelHealth> {
    const endpoint = Object.assign(new ModelHealth(await this.nowMs()), changes);
    this.endpoints.set(endpoint.id, endpoint);
    return endpoint;
  }

  /** One that has yet to answer for itself. */
  async addUnverified(): Promise<ModelHealth> {
    const nowMs = await this.nowMs();
    const verification = { startedAtMs: nowMs, tries: 0, nextAtMs: nowMs, passed: false };
    return this.add({ status: 'pending_verification', verification });
  }

  private of(id: string): ModelHealth {
    const endpoint = this.endpoints.get(id);
    if (!endpoint) throw new Error(`the model has no endpoint ${id}`);
    return endpoint;
  }

  private store() {
    const tell =
      (task: HealthTask, type: NoticeType, episodeOf: (endpoint: ModelHealth, nowMs: number) => string) =>
      (id: string) =>
        this.whenDue(id, task, (endpoint, nowMs) => this.notify(endpoint, type, episodeOf(endpoint, nowMs), nowMs));
    return {
      read: async (id: string): Promise<PlanRow | null> => {
        const endpoint = this.endpoints.get(id);
        if (!endpoint || endpoint.deleted) return null;
        endpoint.plans += 1;
        const facts = factsOf(endpoint, await this.nowMs(), this.verificationExpiryMs);
        const { version, status, statusReason } = endpoint;
        return {
          version,
          host: 'hooks.example.com',
          status,
          statusReason,
          facts,
          plan: planEndpoint(facts, this.rules),
        };
      },
      expectNext: async () => undefined,
      warn: tell(
        'warn',
        'endpoint.failing',
        (e, nowMs) => `${e.failingSinceMs}/${warningStage(nowMs - (e.failingSinceMs ?? nowMs), this.rules)}`,
      ),
      tellDisabled: tell('tell_disabled', 'endpoint.disabled', (e) => `${e.statusChangedAtMs}`),
      tellRefused: tell('tell_refused', 'endpoint.refused', (e) => `${e.refusedSinceMs}`),
      tellRecovered: tell('tell_recovered', 'endpoint.recovered', (e) => troubleOf(e)?.episode ?? ''),
      tellExpiring: tell('tell_expiring', 'endpoint.expiring', (e) => `${e.expiresAtMs}`),
      disable: (id: string) =>
        this.whenDue(id, 'disable', (endpoint, nowMs) => {
          endpoint.change('disabled', 'failing', nowMs);
          endpoint.probe = { startedAtMs: nowMs, tries: 0, nextAtMs: nowMs + probeWaitMs(0), passed: false };
          this.notify(endpoint, 'endpoint.disabled', `${nowMs}`, nowMs);
        }),
      expire: (id: string) =>
        this.whenDue(id, 'expire', (endpoint, nowMs) => {
          endpoint.change('expired', null, nowMs);
          this.notify(endpoint, 'endpoint.expired', `${endpoint.expiresAtMs}`, nowMs);
        }),
      expireVerification: (id: string) =>
        this.whenDue(id, 'expire_verification', (endpoint, nowMs) => {
          endpoint.change('disabled', 'verification_expired', nowMs);
          endpoint.verification.nextAtMs = null;
          this.notify(endpoint, 'endpoint.verification_expired', `${nowMs}`, nowMs);
        }),
    };
  }

  private caller() {
    return {
      verify: (id: string) =>
        this.call(id, 'verify', 'challenge', (endpoint, nowMs) => {
          const { verification } = endpoint;
          verification.tries += 1;
          verification.passed = endpoint.answers;
          verification.nextAtMs = endpoint.answers
            ? null
            : verification.startedAtMs + verificationOffsetMs(verification.tries);
          if (endpoint.answers && endpoint.status === 'pending_verification') endpoint.change('active', null, nowMs);
        }),
      pingPeriodically: async () => null,
      probe: (id: string) =>
        this.call(id, 'probe', 'ping', (endpoint, nowMs) => {
          const probe = endpoint.probe!;
          probe.tries += 1;
          const next = nowMs + probeWaitMs(probe.tries);
          probe.nextAtMs = !endpoint.answers && next <= probe.startedAtMs + probeForMs ? next : null;
          if (!endpoint.answers) return;
          const trouble = troubleOf(endpoint)!;
          endpoint.change('active', null, nowMs);
          endpoint.failingSinceMs = null;
          this.notify(endpoint, 'endpoint.recovered', trouble.episode, nowMs);
        }),
    };
  }

  private async call(
    id: string,
    task: HealthTask,
    way: 'challenge' | 'ping',
    record: (endpoint: ModelHealth, nowMs: number) => void,
  ): Promise<CallReport | null> {
    let report: CallReport | null = null;
    await this.whenDue(id, task, (endpoint, nowMs) => {
      endpoint.calls.push({ way, atMs: nowMs });
      record(endpoint, nowMs);
      report = {
        passed: endpoint.answers,
        way,
        sent: true,
        statusCode: endpoint.answers ? 200 : 500,
        errorCode: endpoint.answers ? null : 'http_status',
        errorMessage: null,
        durationMs: 1,
        body: Buffer.alloc(0),
        allowedRatePerMinute: null,
      };
    });
    return report;
  }

  /** A transaction: what isn't due any more is not done. */
  private async whenDue(
    id: string,
    task: HealthTask,
    act: (endpoint: ModelHealth, nowMs: number) => void,
  ): Promise<void> {
    const nowMs = await this.nowMs();
    const endpoint = this.of(id);
    const facts = factsOf(endpoint, nowMs, this.verificationExpiryMs);
    if (planEndpoint(facts, this.rules).tasks.includes(task)) act(endpoint, nowMs);
    if (endpoint.deaths > 0) {
      endpoint.deaths -= 1;
      throw new Error('the process has died');
    }
  }

  private notify(endpoint: ModelHealth, type: NoticeType, episode: string, atMs: number): void {
    if (endpoint.notices.some((notice) => notice.type === type && notice.episode === episode)) return;
    endpoint.notices.push({ type, episode, atMs });
  }
}

const troubles: ReadonlySet<NoticeType> = new Set(['endpoint.failing', 'endpoint.refused', 'endpoint.disabled']);

function troubleOf(endpoint: ModelHealth): { readonly episode: string; readonly sinceMs: number } | null {
  const last = endpoint.notices.findLast(({ type }) => troubles.has(type));
  if (!last) return null;
  const episode = `${last.type}/${last.episode}`;
  const isOver = endpoint.notices.some((notice) => notice.type === 'endpoint.recovered' && notice.episode === episode);
  return isOver ? null : { episode, sinceMs: Number(last.episode.split('/')[0]) };
}

function factsOf(endpoint: ModelHealth, nowMs: number, verificationExpiryMs: number): EndpointFacts {
  const { verification, probe, notices, failingSinceMs } = endpoint;
  const inMs = (atMs: number | null): number | null => (atMs === null ? null : atMs - nowMs);
  const isTold = (type: NoticeType, episode: number | null): boolean =>
    notices.some((notice) => notice.type === type && notice.episode === `${episode}`);
  const trouble = troubleOf(endpoint);
  const stages = notices
    .filter(({ type, episode }) => type === 'endpoint.failing' && episode.startsWith(`${failingSinceMs}/`))
    .map(({ episode }) => Number(episode.split('/')[1]));
  const lastRefusal = notices.findLast(({ type }) => type === 'endpoint.refused');
  return {
    status: endpoint.status,
    statusReason: endpoint.statusReason,
    verifyInMs: verification.passed ? null : inMs(verification.nextAtMs),
    verificationEndsInMs: verification.passed ? null : inMs(verification.startedAtMs + verificationExpiryMs),
    pingInMs: null,
    probeInMs: probe && inMs(probe.nextAtMs),
    mailInMs: null,
    expiresInMs: inMs(endpoint.expiresAtMs),
    certificateExpiresInMs: null,
    failingForMs: failingSinceMs === null ? null : nowMs - failingSinceMs,
    refused: endpoint.refusedSinceMs !== null,
    told: {
      failingForMs: Math.max(0, ...stages),
      refused: isTold('endpoint.refused', endpoint.refusedSinceMs),
      anyRefusalAgoMs: lastRefusal ? nowMs - lastRefusal.atMs : null,
      disabled: isTold('endpoint.disabled', endpoint.statusChangedAtMs),
      expiring: isTold('endpoint.expiring', endpoint.expiresAtMs),
      certificateExpiring: false,
      trouble: trouble === null ? 'none' : (endpoint.lastSuccessAtMs ?? 0) >= trouble.sinceMs ? 'over' : 'open',
    },
  };
}
