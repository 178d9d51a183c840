import type { DataSource, EntityManager } from 'typeorm';
import {
  type EndpointPlan,
  type HealthRules,
  type HealthTask,
  planEndpoint,
  warningStage,
} from '../domain/endpoint-plan.js';
import { probeForMs, probeWaitMs } from '../domain/probing.js';
import type { VerificationWay } from '../domain/profiles.js';
import type { TokenReport } from '../delivery/token-source.js';
import {
  type ActionResult,
  enableEndpoint,
  pauseEndpoint,
  renewEndpoint,
  reopen,
  resumeEndpoint,
} from './endpoint-actions.js';
import { type HealthReport, readEvidence, toHealthReport } from './endpoint-evidence.js';
import { type EndpointNow, readEndpoint } from './endpoint-now.js';
import type { NoticeStore } from './notice-store.js';
import {
  endpointToCallColumns,
  type EndpointToCall,
  type EndpointToCallRow,
  toEndpointToCall,
} from './endpoint-to-call.js';
import { sweepGraceMs } from './grace.js';

/** An endpoint to be called beside its deliveries. */
export interface EndpointTarget {
  readonly endpointId: string;
  readonly tenantId: string;
  readonly call: EndpointToCall;
  readonly verification: VerificationWay | null;
  readonly rateLimitPerSecond: number | null;
  /** Tries of its verification so far. */
  readonly tries: number;
  readonly verificationDue: boolean;
  readonly pingDue: boolean;
  readonly probeDue: boolean;
}

/** What of a call is kept. */
export interface CheckResult {
  readonly passed: boolean;
  readonly way: string;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  readonly body: Buffer;
  readonly allowedRatePerMinute: number | null;
}

export interface VerificationRecord {
  readonly endpointId: string;
  /** The URL that was asked: another one has to be asked itself. */
  readonly url: string;
  /** Tries before this one. */
  readonly tries: number;
  readonly report: CheckResult;
  /** Of the next try, from the first one. */
  readonly nextOffsetMs: number;
}

export interface PlanRow extends Pick<EndpointNow, 'version' | 'host' | 'status' | 'statusReason' | 'facts'> {
  readonly plan: EndpointPlan;
}

export interface HealthOptions {
  readonly verificationExpiryMs: number;
  readonly rules: HealthRules;
  /** Whether an endpoint that was disabled for failing, and answers again, is enabled without anybody's doing. */
  readonly autoEnable: boolean;
}

/** A timer may fire a little early by the database's clock. */
const dueTolerance = `interval '50 ms'`;
const maxAnswerBytes = 1_024;
/** Statuses in which an endpoint that has not passed is asked. */
const askedWhile = `('pending_verification', 'paused')`;

/** An endpoint's health, seen from its workflow: what is due, and what came of it. */
export class EndpointHealthStore {
  constructor(
    private readonly db: DataSource,
    private readonly notices: NoticeStore,
    private readonly options: HealthOptions,
  ) {}

  async target(endpointId: string): Promise<EndpointTarget | null> {
    const [row] = await this.db.query<TargetRow[]>(
      `select e.tenant_id, e.verification, e.rate_limit_per_second, ${endpointToCallColumns}, coalesce(v.tries, 0) as tries,
              coalesce(e.status in ${askedWhile} and v.passed_at is null and v.next_at <= now() + ${dueTolerance}, false) as verification_due,
              coalesce(e.status = 'active' and e.ping_interval_ms is not null and p.next_at <= now() + ${dueTolerance}, false) as ping_due,
              coalesce(e.status = 'disabled' and e.status_reason = 'failing' and r.next_at <= now() + ${dueTolerance}, false) as probe_due
         from endpoints e
         left join endpoint_checks v on v.endpoint_id = e.id and v.kind = 'verification'
         left join endpoint_checks p on p.endpoint_id = e.id and p.kind = 'ping'
         left join endpoint_checks r on r.endpoint_id = e.id and r.kind = 'probe'
        where e.id = $1 and e.deleted_at is null`,
      [endpointId],
    );
    if (!row) return null;
    return {
      endpointId,
      tenantId: row.tenant_id,
      call: toEndpointToCall(row),
      verification: row.verification,
      rateLimitPerSecond: row.rate_limit_per_second,
      tries: row.tries,
      verificationDue: row.verification_due,
      pingDue: row.ping_due,
      probeDue: row.probe_due,
    };
  }

  /** Notes which version the workflow has dealt with, and reads the endpoint; null when it is deleted or was never there. */
  async read(endpointId: string, dealtWith: number | null): Promise<PlanRow | null> {
    await this.db.query(
      `with seen as (
         update endpoints set health_seen = $2 where id = $1 and health_seen < $2::bigint)
       insert into endpoint_checks as c (endpoint_id, kind, next_at)
       select id, 'ping', now() + ping_interval_ms * interval '1 ms' from endpoints
        where id = $1 and ping_interval_ms is not null and deleted_at is null
       on conflict (endpoint_id, kind) do update set next_at = excluded.next_at
        where c.next_at is null or c.next_at > excluded.next_at`,
      [endpointId, dealtWith],
    );
    const now = await this.readNow(this.db.manager, endpointId);
    return now && { ...now, plan: planEndpoint(now.facts, this.options.rules) };
  }

  /** The sweeper looks after the endpoint's workflow a little after its next deadline, or, where there is none, at the next change. */
  async expectNext(endpointId: string, version: number, inMs: number | null): Promise<void> {
    await this.db.query(
      `update endpoints set health_sweep_after = case when $3::float8 is null then null else now() + ($3 + ${sweepGraceMs}) * interval '1 ms' end
        where id = $1 and health_version = $2 and health_seen = $2`,
      [endpointId, version, inMs],
    );
  }

  /** Notes a try; one that passed makes the endpoint active, if its URL is still the one that was asked. */
  async recordVerification({ endpointId, url, tries, report, nextOffsetMs }: VerificationRecord): Promise<void> {
    await this.db.query(
      `with c as (
         update endpoint_checks set
           tries = tries + 1, last_at = now(), last_way = $4, last_status_code = $5, last_error = $6, last_answer = $7,
           passed_at = case when $3 then now() end, passed_way = case when $3 then $4 end,
           next_at = case when $3 then null else greatest(started_at + $8 * interval '1 ms', now() + interval '5 s') end
          where endpoint_id = $1 and kind = 'verification' and passed_at is null and ($3 or tries = $9)
            and exists (select from endpoints where id = $1 and url = $2)
         returning 1)
       update endpoints set
         status = case when status = 'pending_verification' then 'active' else status end,
         status_reason = case when status = 'pending_verification' then null else status_reason end,
         status_changed_at = case when status = 'pending_verification' then now() else status_changed_at end,
         allowed_rate_per_minute = $10
        where id = $1 and deleted_at is null and $3 and exists (select from c)`,
      [
        endpointId,
        url,
        report.passed,
        report.way,
        report.statusCode,
        errorOf(report),
        answerOf(report),
        nextOffsetMs,
        tries,
        report.allowedRatePerMinute,
      ],
    );
  }

  async recordPing(endpointId: string, report: CheckResult): Promise<void> {
    await this.db.query(
      `update endpoint_checks c set
         tries = tries + 1, last_at = now(), last_way = $2, last_status_code = $3, last_error = $4, last_answer = $5,
         passed_at = case when $6 then now() else passed_at end, passed_way = case when $6 then $2 else passed_way end,
         next_at = (select now() + ping_interval_ms * interval '1 ms' from endpoints where id = $1)
        where endpoint_id = $1 and kind = 'ping'`,
      [endpointId, report.way, report.statusCode, errorOf(report), answerOf(report), report.passed],
    );
  }

  /** A request for an OAuth 2.0 token that the endpoint's requests need. */
  async recordToken({ endpointId, statusCode, problem }: TokenReport): Promise<void> {
    await this.db.query(
      `insert into endpoint_checks as c (endpoint_id, kind, tries, last_at, last_status_code, last_error, passed_at)
       values ($1, 'token', 1, now(), $2, $3, case when $3::text is null then now() end)
       on conflict (endpoint_id, kind) do update set
         tries = c.tries + 1, last_at = excluded.last_at, last_status_code = excluded.last_status_code,
         last_error = excluded.last_error, passed_at = coalesce(excluded.passed_at, c.passed_at)`,
      [endpointId, statusCode, problem],
    );
  }

  /** The owner hears that the endpoint has failed for so long: once a stage, and only of the longest that is over. */
  async warn(endpointId: string): Promise<void> {
    const { rules } = this.options;
    await this.whenDue(endpointId, 'warn', async (tx, { facts, failingSince, failingFrom, lastFailure }) => {
      const stage = warningStage(facts.failingForMs ?? 0, rules);
      if (stage === null || !failingSince || !failingFrom) return;
      await this.notices.create(tx, {
        endpointId,
        type: 'endpoint.failing',
        episode: `${failingSince.toISOString()}/${stage}`,
        data: {
          since: failingSince,
          failing_for_ms: stage,
          disabled_at: new Date(failingFrom.getTime() + rules.disableAfterMs),
          ...lastFailure,
        },
      });
    });
  }

  /** Too long without one success: the endpoint takes nothing any more. What waits is closed by WaitingDeliveries. */
  async disable(endpointId: string): Promise<void> {
    await this.whenDue(endpointId, 'disable', async (tx, { failingSince, lastFailure }) => {
      const changedAt = await this.changeStatus(tx, endpointId, 'disabled', 'failing');
      await tx.query(
        `insert into endpoint_checks (endpoint_id, kind, next_at) values ($1, 'probe', now() + $2 * interval '1 ms')
         on conflict (endpoint_id, kind) do update set started_at = now(), tries = 0, next_at = excluded.next_at, passed_at = null,
           passed_way = null, last_at = null, last_way = null, last_status_code = null, last_error = null, last_answer = null`,
        [endpointId, probeWaitMs(0)],
      );
      await this.tellDisabledAt(tx, endpointId, changedAt, { reason: 'failing', since: failingSince, ...lastFailure });
    });
  }

  /** Disabled by its own answer, 410: the attempt's record said so, and the owner is to hear of it. */
  async tellDisabled(endpointId: string): Promise<void> {
    await this.whenDue(endpointId, 'tell_disabled', async (tx, { statusReason, statusChangedAt, lastFailure }) => {
      await this.tellDisabledAt(tx, endpointId, statusChangedAt, {
        reason: statusReason,
        since: statusChangedAt,
        ...lastFailure,
      });
    });
  }

  async tellRefused(endpointId: string): Promise<void> {
    await this.whenDue(endpointId, 'tell_refused', async (tx, { refusedSince, lastFailure }) => {
      if (!refusedSince) return;
      const data = { since: refusedSince, ...lastFailure };
      await this.notices.create(tx, {
        endpointId,
        type: 'endpoint.refused',
        episode: refusedSince.toISOString(),
        data,
      });
    });
  }

  async tellRecovered(endpointId: string): Promise<void> {
    await this.whenDue(endpointId, 'tell_recovered', async (tx, { trouble, lastSuccessAt }) => {
      if (!trouble) return;
      const data = { enabled: true, since: lastSuccessAt, troubled_since: trouble.since };
      await this.notices.create(tx, { endpointId, type: 'endpoint.recovered', episode: trouble.noticeId, data });
    });
  }

  async tellExpiring(endpointId: string): Promise<void> {
    await this.whenDue(endpointId, 'tell_expiring', async (tx, { expiresAt }) => {
      if (!expiresAt) return;
      const data = { expires_at: expiresAt };
      await this.notices.create(tx, {
        endpointId,
        type: 'endpoint.expiring',
        episode: expiresAt.toISOString(),
        data,
      });
    });
  }

  async tellCertificateExpiring(endpointId: string): Promise<void> {
    await this.whenDue(endpointId, 'tell_certificate_expiring', async (tx, { certificateExpiresAt }) => {
      if (!certificateExpiresAt) return;
      await this.notices.create(tx, {
        endpointId,
        type: 'endpoint.certificate_expiring',
        episode: certificateExpiresAt.toISOString(),
        data: { expires_at: certificateExpiresAt },
      });
    });
  }

  /** Its date has come: it takes nothing any more. What waits is closed by WaitingDeliveries. */
  async expire(endpointId: string): Promise<void> {
    await this.whenDue(endpointId, 'expire', async (tx, { expiresAt }) => {
      if (!expiresAt) return;
      await this.changeStatus(tx, endpointId, 'expired', null);
      const data = { expires_at: expiresAt };
      await this.notices.create(tx, { endpointId, type: 'endpoint.expired', episode: expiresAt.toISOString(), data });
    });
  }

  /** The time to verify is over. What waits is closed by WaitingDeliveries. */
  async expireVerification(endpointId: string): Promise<void> {
    await this.whenDue(endpointId, 'expire_verification', async (tx) => {
      const changedAt = await this.changeStatus(tx, endpointId, 'disabled', 'verification_expired');
      const [check] = await tx.query<{ since: Date; tries: number; last_error: string | null }[]>(
        `with c as (update endpoint_checks set next_at = null where endpoint_id = $1 and kind = 'verification'
                    returning started_at as since, tries, last_error)
         select * from c`,
        [endpointId],
      );
      await this.notices.create(tx, {
        endpointId,
        type: 'endpoint.verification_expired',
        episode: changedAt.toISOString(),
        data: { ...check },
      });
    });
  }

  /** What a disabled endpoint said to a ping. One that answers again is enabled, or its owner hears that it could be. */
  async recordProbe(endpointId: string, report: CheckResult): Promise<void> {
    await this.whenDue(endpointId, 'probe', async (tx, { trouble, statusChangedAt }) => {
      const [check] = await tx.query<{ tries: number; at: Date }[]>(
        `with c as (
           update endpoint_checks set
             tries = tries + 1, last_at = now(), last_way = $2, last_status_code = $3, last_error = $4, last_answer = $5,
             passed_at = case when $6 then now() end, passed_way = case when $6 then $2 end,
             next_at = null
            where endpoint_id = $1 and kind = 'probe' returning tries, last_at as at)
         select tries, at from c`,
        [endpointId, report.way, report.statusCode, errorOf(report), answerOf(report), report.passed],
      );
      if (!report.passed) {
        await tx.query(
          `update endpoint_checks set next_at = now() + $2 * interval '1 ms'
            where endpoint_id = $1 and kind = 'probe' and now() + $2 * interval '1 ms' <= started_at + $3 * interval '1 ms'`,
          [endpointId, probeWaitMs(check?.tries ?? 0), probeForMs],
        );
        return;
      }
      const { autoEnable } = this.options;
      // Another URL than the one that was verified has to be verified itself, and to show that it takes deliveries.
      if (autoEnable && (await reopen(tx, endpointId)) !== 'active') return;
      const episode = trouble?.noticeId ?? statusChangedAt.toISOString();
      await this.notices.create(tx, {
        endpointId,
        type: 'endpoint.recovered',
        // Enabled by hand later, it has yet to show that it takes deliveries again.
        episode: autoEnable ? episode : `${episode}/answers`,
        data: { enabled: autoEnable, since: check?.at, troubled_since: trouble?.since ?? statusChangedAt },
      });
    });
  }

  /** Nothing is sent to it until it is resumed. What waits is held by WaitingDeliveries. Null: the tenant has no such endpoint. */
  pause(tenantId: string, id: string): Promise<ActionResult | null> {
    return pauseEndpoint(this.db, tenantId, id);
  }

  resume(tenantId: string, id: string): Promise<ActionResult | null> {
    return resumeEndpoint(this.db, tenantId, id);
  }

  enable(tenantId: string, id: string): Promise<ActionResult | null> {
    return enableEndpoint(this.db, tenantId, id);
  }

  /** Null for `expiresAt`: it doesn't expire any more. */
  renew(tenantId: string, id: string, expiresAt: Date | null): Promise<ActionResult | null> {
    return renewEndpoint(this.db, tenantId, id, expiresAt);
  }

  /** State, evidence and what comes next, for `GET …/health`. Null: the tenant has no such endpoint. */
  async health(tenantId: string, id: string): Promise<HealthReport | null> {
    const evidence = await readEvidence(this.db, tenantId, id);
    const now = evidence && (await this.readNow(this.db.manager, id));
    return now && toHealthReport(evidence, now, planEndpoint(now.facts, this.options.rules));
  }

  private readNow(tx: EntityManager, endpointId: string): Promise<EndpointNow | null> {
    return readEndpoint(tx, endpointId, this.options.verificationExpiryMs);
  }

  /**
   * Does what is due, in one transaction with what is told of it, if it still is: whoever tries it again, or at the same time,
   * finds it done. The row is locked first, and then read.
   */
  private async whenDue(
    endpointId: string,
    task: HealthTask,
    act: (tx: EntityManager, now: EndpointNow) => Promise<void>,
  ): Promise<void> {
    await this.db.transaction(async (tx) => {
      await tx.query('select 1 from endpoints where id = $1 for no key update', [endpointId]);
      const now = await this.readNow(tx, endpointId);
      if (now && planEndpoint(now.facts, this.options.rules).tasks.includes(task)) await act(tx, now);
    });
  }

  private async changeStatus(
    tx: EntityManager,
    endpointId: string,
    status: 'disabled' | 'expired',
    reason: string | null,
  ): Promise<Date> {
    const [row] = await tx.query<{ at: Date }[]>(
      `with e as (update endpoints set status = $2, status_reason = $3, status_changed_at = now() where id = $1
                  returning status_changed_at as at)
       select at from e`,
      [endpointId, status, reason],
    );
    if (!row) throw new Error(`endpoint ${endpointId} is not there any more`);
    return row.at;
  }

  private async tellDisabledAt(tx: EntityManager, endpointId: string, at: Date, data: object): Promise<void> {
    const { autoEnable } = this.options;
    await this.notices.create(tx, {
      endpointId,
      type: 'endpoint.disabled',
      episode: at.toISOString(),
      data: { ...data, disabled_at: at, auto_enable: autoEnable },
    });
  }

  /** The sealed token of the endpoint's consent address: the one that it has, else this one. */
  async keepConsentToken(endpointId: string, fresh: string): Promise<string> {
    const [row] = await this.db.query<{ sealed_token: string }[]>(
      `with c as (
         update endpoint_checks set sealed_token = coalesce(sealed_token, $2)
          where endpoint_id = $1 and kind = 'verification' returning sealed_token)
       select sealed_token from c`,
      [endpointId, fresh],
    );
    return row?.sealed_token ?? fresh;
  }

  /** Null where nobody waits for a consent. */
  async consentToken(endpointId: string): Promise<string | null> {
    const [row] = await this.db.query<{ sealed_token: string | null }[]>(
      `select v.sealed_token from endpoint_checks v join endpoints e on e.id = v.endpoint_id
        where v.endpoint_id = $1 and v.kind = 'verification' and v.passed_at is null and e.deleted_at is null and e.status in ${askedWhile}`,
      [endpointId],
    );
    return row?.sealed_token ?? null;
  }

  /** Somebody agreed by the consent address: as a handshake that passed. */
  async recordConsent(endpointId: string, sealedToken: string, allowedRatePerMinute: number | null): Promise<boolean> {
    const rows = await this.db.query<unknown[]>(
      `with c as (
         update endpoint_checks set passed_at = now(), passed_way = 'handshake', last_at = now(), last_way = 'handshake',
                last_status_code = null, last_error = null, last_answer = null, next_at = null, sealed_token = null
          where endpoint_id = $1 and kind = 'verification' and passed_at is null and sealed_token = $2 returning 1
       ), e as (
         update endpoints set
           status = case when status = 'pending_verification' then 'active' else status end,
           status_reason = case when status = 'pending_verification' then null else status_reason end,
           status_changed_at = case when status = 'pending_verification' then now() else status_changed_at end,
           allowed_rate_per_minute = $3, health_version = health_version + 1, health_sweep_after = now()
          where id = $1 and deleted_at is null and exists (select from c) returning 1)
       select 1 from e`,
      [endpointId, sealedToken, allowedRatePerMinute],
    );
    return rows.length > 0;
  }

  /** Endpoints whose workflow should have heard of something, or done something, by now. */
  async toTell(limit: number): Promise<string[]> {
    const rows = await this.db.query<{ id: string }[]>(
      `select id from endpoints where health_sweep_after <= now() order by health_sweep_after limit $1`,
      [limit],
    );
    return rows.map(({ id }) => id);
  }

  /** They have been told: look again later, should that not have helped. */
  async told(endpointIds: readonly string[], againInMs: number): Promise<void> {
    if (endpointIds.length === 0) return;
    await this.db.query(
      `update endpoints set health_sweep_after = case when deleted_at is null then now() + $2 * interval '1 ms' end
        where id = any($1) and health_sweep_after <= now()`,
      [endpointIds, againInMs],
    );
  }

  /** Every endpoint's workflow is to be started anew if the store is another one than at the last look. True when it is. */
  async noteStore(storeId: string): Promise<boolean> {
    const [changed] = await this.db.query<{ replaced: boolean }[]>(
      `with s as (
         insert into engine_state as s (name, value) values ('temporal_store', $1)
         on conflict (name) do update set value = excluded.value, updated_at = now() where s.value <> excluded.value
         returning xmax <> 0 as replaced
       ), e as (
         update endpoints set health_sweep_after = now() where deleted_at is null and exists (select from s))
       select replaced from s`,
      [storeId],
    );
    return changed?.replaced ?? false;
  }
}

interface TargetRow extends EndpointToCallRow {
  readonly tenant_id: string;
  readonly verification: VerificationWay | null;
  readonly rate_limit_per_second: number | null;
  readonly tries: number;
  readonly verification_due: boolean;
  readonly ping_due: boolean;
  readonly probe_due: boolean;
}

/** The answer as an operator reads it: short, and printable by Postgres. */
function answerOf({ body }: CheckResult): string | null {
  if (body.length === 0) return null;
  return body.subarray(0, maxAnswerBytes).toString('utf8').replaceAll('\u0000', '\uFFFD');
}

function errorOf({ passed, errorCode, errorMessage }: CheckResult): string | null {
  if (passed) return null;
  return `${errorCode ?? 'failed'}${errorMessage === null ? '' : `: ${errorMessage}`}`.replaceAll('\u0000', '\uFFFD');
}
