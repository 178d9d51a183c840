import type { EntityManager } from 'typeorm';
import type { EndpointStatus } from '../domain/closed-lists.js';
import type { EndpointFacts } from '../domain/endpoint-plan.js';

/** An endpoint as it is now, and what its owner knows of that. */
export interface EndpointNow {
  readonly version: number;
  readonly host: string;
  readonly status: EndpointStatus;
  readonly statusReason: string | null;
  readonly statusChangedAt: Date;
  readonly failingSince: Date | null;
  /** The same, but not before it was last resumed: while it was paused, nothing was sent that could have succeeded. */
  readonly failingFrom: Date | null;
  readonly refusedSince: Date | null;
  readonly lastSuccessAt: Date | null;
  readonly expiresAt: Date | null;
  readonly certificateExpiresAt: Date | null;
  /** The last bad news that wasn't called over yet, and what it told of. */
  readonly trouble: { readonly noticeId: string; readonly since: Date } | null;
  /** Of the delivery that failed last, as an owner reads it. */
  readonly lastFailure: { readonly last_status_code: number | null; readonly last_error: string | null };
  readonly facts: EndpointFacts;
}

/** Null when the endpoint is deleted or was never there. */
export async function readEndpoint(
  db: EntityManager,
  endpointId: string,
  verificationExpiryMs: number,
): Promise<EndpointNow | null> {
  const [row] = await db.query<NowRow[]>(statement, [endpointId, verificationExpiryMs]);
  return row ? toNow(row) : null;
}

/** Milliseconds from now until then, by the database's clock. */
export function inMs(time: string): string {
  return `(extract(epoch from ${time} - clock_timestamp()) * 1000)::float8`;
}

/** A time as notices name their episodes by: as JavaScript writes it. */
const iso = (time: string): string => `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
const told = (type: string, episode: string): string =>
  `exists (select from notices n where n.endpoint_id = e.id and n.type = '${type}' and n.episode = ${iso(episode)})`;

const failingFrom = 'case when e.failing_since is not null then greatest(e.failing_since, e.resumed_at) end';

const statement = `
  select e.health_version::int as version, e.url, e.status, e.status_reason, e.status_changed_at, e.failing_since, e.refused_since,
         e.last_success_at, e.expires_at, e.client_certificate_expires_at,
         case when v.passed_at is null then ${inMs('v.next_at')} end as verify_in_ms,
         case when v.passed_at is null then ${inMs(`v.started_at + $2 * interval '1 ms'`)} end as verification_ends_in_ms,
         case when e.ping_interval_ms is not null then ${inMs('p.next_at')} end as ping_in_ms,
         ${inMs('r.next_at')} as probe_in_ms,
         ${inMs(`(select min(n.mail_next_at) from notices n where n.endpoint_id = e.id and n.mail_status = 'pending')`)} as mail_in_ms,
         ${inMs('e.expires_at')} as expires_in_ms,
         ${inMs('e.client_certificate_expires_at')} as certificate_expires_in_ms,
         ${failingFrom} as failing_from, -${inMs(failingFrom)} as failing_for_ms,
         (select coalesce(max(split_part(n.episode, '/', 2)::float8), 0) from notices n
           where n.endpoint_id = e.id and n.type = 'endpoint.failing' and split_part(n.episode, '/', 1) = ${iso('e.failing_since')}) as told_failing_for_ms,
         ${told('endpoint.refused', 'e.refused_since')} as told_refused,
         -${inMs(`(select max(n.created_at) from notices n where n.endpoint_id = e.id and n.type = 'endpoint.refused')`)} as any_refusal_ago_ms,
         ${told('endpoint.disabled', 'e.status_changed_at')} as told_disabled,
         ${told('endpoint.expiring', 'e.expires_at')} as told_expiring,
         ${told('endpoint.certificate_expiring', 'e.client_certificate_expires_at')} as told_certificate_expiring,
         t.id as trouble_id, t.since as trouble_since,
         case when e.last_success_at >= t.since then true else false end as trouble_over,
         f.last_status_code, f.last_error
    from endpoints e
    left join endpoint_checks v on v.endpoint_id = e.id and v.kind = 'verification'
    left join endpoint_checks p on p.endpoint_id = e.id and p.kind = 'ping'
    left join endpoint_checks r on r.endpoint_id = e.id and r.kind = 'probe'
    left join lateral (
      select n.id, split_part(n.episode, '/', 1)::timestamptz as since from notices n
       where n.endpoint_id = e.id and n.type in ('endpoint.failing', 'endpoint.refused', 'endpoint.disabled')
       order by n.created_at desc, n.id desc limit 1
    ) t on not exists (
      select from notices o where o.endpoint_id = e.id and o.type = 'endpoint.recovered' and o.episode = t.id)
    -- The newest of those that have failed, whether they are tried again or were given up.
    left join lateral (
      select d.last_status_code, d.last_error from (
        (select * from deliveries where endpoint_id = e.id and status = 'retrying' and not operational order by id desc limit 1)
        union all
        (select * from deliveries where endpoint_id = e.id and status = 'failed' and not operational order by id desc limit 1)) d
       where d.last_error is not null order by d.updated_at desc limit 1
    ) f on e.failing_since is not null or e.status = 'disabled'
   where e.id = $1 and e.deleted_at is null`;

interface NowRow {
  readonly version: number;
  readonly url: string;
  readonly status: EndpointStatus;
  readonly status_reason: string | null;
  readonly status_changed_at: Date;
  readonly failing_since: Date | null;
  readonly failing_from: Date | null;
  readonly refused_since: Date | null;
  readonly last_success_at: Date | null;
  readonly expires_at: Date | null;
  readonly client_certificate_expires_at: Date | null;
  readonly verify_in_ms: number | null;
  readonly verification_ends_in_ms: number | null;
  readonly ping_in_ms: number | null;
  readonly probe_in_ms: number | null;
  readonly mail_in_ms: number | null;
  readonly expires_in_ms: number | null;
  readonly certificate_expires_in_ms: number | null;
  readonly failing_for_ms: number | null;
  readonly told_failing_for_ms: number;
  readonly told_refused: boolean;
  readonly any_refusal_ago_ms: number | null;
  readonly told_disabled: boolean;
  readonly told_expiring: boolean;
  readonly told_certificate_expiring: boolean;
  readonly trouble_id: string | null;
  readonly trouble_since: Date | null;
  readonly trouble_over: boolean;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
}

function toNow(row: NowRow): EndpointNow {
  const trouble =
    row.trouble_id === null || row.trouble_since === null
      ? null
      : { noticeId: row.trouble_id, since: row.trouble_since };
  return {
    version: row.version,
    host: URL.canParse(row.url) ? new URL(row.url).host : 'invalid URL',
    status: row.status,
    statusReason: row.status_reason,
    statusChangedAt: row.status_changed_at,
    failingSince: row.failing_since,
    failingFrom: row.failing_from,
    refusedSince: row.refused_since,
    lastSuccessAt: row.last_success_at,
    expiresAt: row.expires_at,
    certificateExpiresAt: row.client_certificate_expires_at,
    trouble,
    lastFailure: { last_status_code: row.last_status_code, last_error: row.last_error },
    facts: {
      status: row.status,
      statusReason: row.status_reason,
      verifyInMs: row.verify_in_ms,
      verificationEndsInMs: row.verification_ends_in_ms,
      pingInMs: row.ping_in_ms,
      probeInMs: row.probe_in_ms,
      mailInMs: row.mail_in_ms,
      expiresInMs: row.expires_in_ms,
      certificateExpiresInMs: row.certificate_expires_in_ms,
      failingForMs: row.failing_for_ms,
      refused: row.refused_since !== null,
      told: {
        failingForMs: row.told_failing_for_ms,
        refused: row.told_refused,
        anyRefusalAgoMs: row.any_refusal_ago_ms,
        disabled: row.told_disabled,
        expiring: row.told_expiring,
        certificateExpiring: row.told_certificate_expiring,
        trouble: trouble === null ? 'none' : row.trouble_over ? 'over' : 'open',
      },
    },
  };
}
