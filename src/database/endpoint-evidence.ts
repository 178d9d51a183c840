import type { DataSource } from 'typeorm';
import type { EndpointStatus, MailStatus, NoticeType } from '../domain/closed-lists.js';
import type { EndpointPlan, HealthTask } from '../domain/endpoint-plan.js';
import type { EndpointNow } from './endpoint-now.js';

/** What `GET …/health` answers from. */
export interface HealthReport {
  readonly status: EndpointStatus;
  readonly statusReason: string | null;
  readonly statusChangedAt: Date;
  readonly failingSince: Date | null;
  readonly refusedSince: Date | null;
  readonly lastSuccessAt: Date | null;
  readonly pace: 'open' | 'probing' | 'rising';
  readonly evidence: {
    readonly firstFailureAt: Date | null;
    /** Since the first failure, among the endpoint's newest deliveries. */
    readonly attempts: number;
    readonly failedAttempts: number;
    readonly lastFailures: readonly FailedAnswer[];
  };
  readonly backlog: { readonly held: number; readonly waiting: number; readonly oldestAt: Date | null };
  /** Events that it would have got since it was disabled or expired; null while it takes them. */
  readonly missed: { readonly since: Date; readonly events: number } | null;
  /** Newest first. */
  readonly notices: readonly ToldNotice[];
  /** Requests for OAuth 2.0 tokens; null: there were none. */
  readonly token: TokenEvidence | null;
  /** As things stand, soonest first. */
  readonly coming: readonly { readonly what: HealthTask; readonly at: Date }[];
  readonly mail: {
    readonly ownerEmail: string | null;
    readonly pending: number;
    readonly failed: number;
    readonly lastError: string | null;
    readonly nextAt: Date | null;
  };
}

export interface TokenEvidence {
  readonly requests: number;
  readonly lastAt: Date;
  readonly lastStatusCode: number | null;
  readonly lastError: string | null;
  readonly lastSuccessAt: Date | null;
}

export interface FailedAnswer {
  readonly deliveryId: string;
  readonly at: Date;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
}

export interface ToldNotice {
  readonly id: string;
  readonly type: NoticeType;
  readonly createdAt: Date;
  readonly mailStatus: MailStatus;
  readonly mailError: string | null;
}

/** Counting stops there: more says nothing more. */
export const countLimits = { events: 10_000, backlog: 100_000, deliveries: 1_000 } as const;
const shownFailures = 5;
const shownNotices = 10;

/** Null: the tenant has no such endpoint. Each part reads a bounded number of rows, however much the endpoint has. */
export async function readEvidence(db: DataSource, tenantId: string, id: string): Promise<EvidenceRow | null> {
  const [row] = await db.query<EvidenceRow[]>(
    `with e as materialized (select * from endpoints where tenant_id = $1 and id = $2 and deleted_at is null
     ), newest as materialized (
       select d.id from e, unnest(array['retrying', 'failed', 'succeeded', 'held', 'pending', 'cancelled']) as s (status),
              lateral (select id from deliveries where endpoint_id = e.id and status = s.status and not operational
                        order by id desc limit ${countLimits.deliveries}) d
     ), tried as materialized (
       select a.delivery_id, a.started_at, a.status_code, a.error_code, a.error_message, a.outcome
         from newest join attempts a on a.delivery_id = newest.id
     ), waiting as (
       select s.status, w.n, o.created_at as oldest_at from e, unnest(array['held', 'pending', 'retrying']) as s (status),
              lateral (select count(*)::int as n from (select from deliveries where endpoint_id = e.id and status = s.status limit ${countLimits.backlog}) x) w
              left join lateral (select created_at from deliveries where endpoint_id = e.id and status = s.status order by id limit 1) o on true
     ), told as materialized (
       select n.id, n.type, n.created_at, n.mail_status, n.mail_error, n.mail_next_at from e join notices n on n.endpoint_id = e.id
     )
     select e.pace, e.owner_email,
            (select count(*)::int from tried where started_at >= e.failing_since) as attempts,
            (select count(*)::int from tried where started_at >= e.failing_since and outcome <> 'delivered') as failed_attempts,
            (select coalesce(json_agg(f), '[]') from (
               select delivery_id, started_at, status_code, error_code, error_message from tried
                where outcome <> 'delivered' order by started_at desc limit ${shownFailures}) f) as last_failures,
            coalesce((select n from waiting where status = 'held'), 0) as held,
            (select coalesce(sum(n), 0)::int from waiting where status <> 'held') as waiting,
            (select min(oldest_at) from waiting) as oldest_at,
            case when e.status in ('disabled', 'expired') then (select count(*)::int from (
              select from events v
               where v.tenant_id = e.tenant_id and v.accepted_at >= e.status_changed_at and not v.operational
                 and (array_length(string_to_array(v.type, '.'), 1) || ':' || v.type) like any (e.event_likes)
               limit ${countLimits.events}) x) end as missed_events,
            (select coalesce(json_agg(n), '[]') from (select id, type, created_at, mail_status, mail_error from told
               order by id desc limit ${shownNotices}) n) as notices,
            (select row_to_json(c) from (select tries, last_at, last_status_code, last_error, passed_at from endpoint_checks
               where endpoint_id = e.id and kind = 'token') c) as token,
            (select count(*)::int from told where mail_status = 'pending') as mails_pending,
            (select count(*)::int from told where mail_status = 'failed') as mails_failed,
            (select mail_error from told where mail_error is not null order by id desc limit 1) as mail_error,
            (select min(mail_next_at) from told where mail_status = 'pending') as mail_next_at
       from e`,
    [tenantId, id],
  );
  return row ?? null;
}

export function toHealthReport(row: EvidenceRow, now: EndpointNow, plan: EndpointPlan): HealthReport {
  const readAt = Date.now();
  return {
    status: now.status,
    statusReason: now.statusReason,
    statusChangedAt: now.statusChangedAt,
    failingSince: now.failingSince,
    refusedSince: now.refusedSince,
    lastSuccessAt: now.lastSuccessAt,
    pace: row.pace,
    evidence: {
      firstFailureAt: now.failingSince,
      attempts: row.attempts,
      failedAttempts: row.failed_attempts,
      lastFailures: row.last_failures.map((failure) => ({
        deliveryId: failure.delivery_id,
        at: new Date(failure.started_at),
        statusCode: failure.status_code,
        errorCode: failure.error_code,
        errorMessage: failure.error_message,
      })),
    },
    backlog: { held: row.held, waiting: row.waiting, oldestAt: row.oldest_at },
    missed: row.missed_events === null ? null : { since: now.statusChangedAt, events: row.missed_events },
    notices: row.notices.map((notice) => ({
      id: notice.id,
      type: notice.type,
      createdAt: new Date(notice.created_at),
      mailStatus: notice.mail_status,
      mailError: notice.mail_error,
    })),
    token: row.token && {
      requests: row.token.tries,
      lastAt: new Date(row.token.last_at),
      lastStatusCode: row.token.last_status_code,
      lastError: row.token.last_error,
      lastSuccessAt: row.token.passed_at === null ? null : new Date(row.token.passed_at),
    },
    coming: plan.coming.map(({ task, inMs }) => ({ what: task, at: new Date(readAt + inMs) })),
    mail: {
      ownerEmail: row.owner_email,
      pending: row.mails_pending,
      failed: row.mails_failed,
      lastError: row.mail_error,
      nextAt: row.mail_next_at,
    },
  };
}

export interface EvidenceRow {
  readonly pace: HealthReport['pace'];
  readonly owner_email: string | null;
  readonly token: {
    readonly tries: number;
    readonly last_at: string;
    readonly last_status_code: number | null;
    readonly last_error: string | null;
    readonly passed_at: string | null;
  } | null;
  readonly attempts: number;
  readonly failed_attempts: number;
  readonly last_failures: readonly {
    readonly delivery_id: string;
    readonly started_at: string;
    readonly status_code: number | null;
    readonly error_code: string | null;
    readonly error_message: string | null;
  }[];
  readonly held: number;
  readonly waiting: number;
  readonly oldest_at: Date | null;
  readonly missed_events: number | null;
  readonly notices: readonly {
    readonly id: string;
    readonly type: NoticeType;
    readonly created_at: string;
    readonly mail_status: MailStatus;
    readonly mail_error: string | null;
  }[];
  readonly mails_pending: number;
  readonly mails_failed: number;
  readonly mail_error: string | null;
  readonly mail_next_at: Date | null;
}
