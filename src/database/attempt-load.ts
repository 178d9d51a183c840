import type { AttemptKey } from '../../activities/contracts/delivery-activities.js';
import type { DeliveryReason } from '../domain/closed-lists.js';
import type { AttemptRowOutcome, LoadedDelivery } from './attempt-rows.js';
import type { Database } from './data-source.js';
import { endpointToCallColumns, type EndpointToCallRow, toEndpointToCall } from './endpoint-to-call.js';
import { holderLives } from './lease-sql.js';
import { mustAsk } from './pacing-sql.js';

/**
 * Changes with the rows of an endpoint and a type: whoever changes an endpoint's secrets touches its row too. Another server, or
 * the same after a crash, may give a number of a transaction again.
 */
export function settingsVersion(endpointXmin: string, typeXmin: string): string {
  return `(${endpointXmin}::text || '/' || coalesce(${typeXmin}::text, '') || '/' || pg_postmaster_start_time()::text)`;
}

/** All that an attempt needs to know, of many at once; null where there is no such delivery. `leaseHolder` is who we are. */
export async function loadForAttempts(
  db: Database,
  keys: readonly AttemptKey[],
  leaseHolder: string | null,
): Promise<(Loaded | null)[]> {
  const rows = await db.hot.run<LoadRow>(loadStatement, [
    keys.map(({ deliveryId }) => deliveryId),
    keys.map(({ runId }) => runId),
    keys.map(({ sequence }) => sequence),
    leaseHolder,
  ]);
  const found = new Map(rows.map((row) => [row.nth, row]));
  return keys.map((_, index) => {
    const row = found.get(index + 1);
    if (!row) return null;
    return {
      delivery: toLoaded(row),
      settings: row.settings,
      endpointAsks: row.endpoint_asks,
      secretsForMs: row.secrets_for_ms,
    };
  });
}

/** Of deliveries as publishing made them: {@link settingsVersion}; null where something was done to one, or it is leased to another. */
export async function findUntouched(
  db: Database,
  ids: readonly string[],
  leaseHolder: string | null,
): Promise<(Untouched | null)[]> {
  const rows = await db.hot.run<Untouched & { id: string }>(untouchedStatement, [ids, leaseHolder]);
  const found = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => found.get(id) ?? null);
}

export interface Untouched {
  readonly settings: string;
  readonly leased: boolean;
}

const untouchedStatement = {
  name: 'find_untouched',
  text: `
  select k.id, d.lease_holder is not null as leased, ${settingsVersion('e.xmin', 't.xmin')} as settings
    from unnest($1::text[]) as k (id)
   cross join lateral (
     select * from deliveries x
      where x.id = k.id and (x.lease_holder is null or x.lease_holder = $2::text) and x.status = 'pending' and x.reason = 'published' and x.round = 1
        and x.attempt_count = 0 and x.slot is null and x.next_attempt_at <= clock_timestamp() and not x.wake_requested offset 0
   ) d
   cross join lateral (select x.xmin from endpoints x where x.id = d.endpoint_id offset 0) e
    left join lateral (select x.xmin from event_types x where x.tenant_id = d.tenant_id and x.name = d.type offset 0) t on true`,
};

export interface Loaded {
  readonly delivery: LoadedDelivery;
  /** {@link settingsVersion} of what it says of its endpoint and its type. */
  readonly settings: string;
  /** Deliveries to the endpoint have to ask for their turn: this one may have done so already. */
  readonly endpointAsks: boolean;
  /** Until one of the endpoint's secrets ends, without a change of its row; null: none does. */
  readonly secretsForMs: number | null;
}

interface LoadRow extends EndpointToCallRow {
  settings: string;
  secrets_for_ms: number | null;
  nth: number;
  id: string;
  tenant_id: string;
  endpoint_id: string;
  event_id: string;
  type: string;
  status: LoadedDelivery['status'];
  reason: DeliveryReason;
  round: number;
  attempt_count: number;
  round_attempts: number;
  last_status_code: number | null;
  last_error: string | null;
  wake_requested: boolean;
  lease: LoadedDelivery['lease'];
  must_ask: boolean;
  endpoint_asks: boolean;
  slot: 'taken' | 'retry' | null;
  due_in_ms: number | null;
  rests_for_ms: number | null;
  event_created_at: Date;
  api_version: string | null;
  source: string | null;
  subject: string | null;
  traceparent: string | null;
  data: string | null;
  type_rules: string | null;
  pinned_version: string;
  endpoint_status: LoadedDelivery['endpoint']['status'];
  status_reason: string | null;
  deleted: boolean;
  quick: boolean;
  succeeded_before: boolean;
  run_has_attempts: boolean;
  recorded_number: number | null;
  recorded_status_code: number | null;
  recorded_error_code: string | null;
  recorded_error_message: string | null;
  recorded_outcome: AttemptRowOutcome | null;
}

// Each lateral part is a look-up by key, whatever the planner thinks of the sizes of tables.
const loadStatement = {
  name: 'load_attempts',
  text: `
  select k.nth::int, d.id, d.tenant_id, d.endpoint_id, d.event_id, d.type, d.status, d.reason, d.round, d.attempt_count, d.round_attempts,
         d.last_status_code, d.last_error, d.wake_requested,
         case when d.lease_holder = $4::text then 'ours' when ${holderLives('d.lease_holder')} then 'another' else 'none' end as lease,
         d.slot, (d.slot is distinct from 'taken' and ${mustAsk}) as must_ask, ${mustAsk} as endpoint_asks,
         (extract(epoch from d.next_attempt_at - clock_timestamp()) * 1000)::float8 as due_in_ms,
         (extract(epoch from e.not_before - clock_timestamp()) * 1000)::float8 as rests_for_ms,
         v.created_at as event_created_at, v.api_version, v.source, v.subject, v.traceparent, v.data,
         t.rules as type_rules, ${settingsVersion('e.xmin', 't.xmin')} as settings, e.api_version as pinned_version,
         (select (extract(epoch from min(s.expires_at) - clock_timestamp()) * 1000)::float8 from endpoint_secrets s
           where s.endpoint_id = e.id and s.expires_at > now()) as secrets_for_ms,
         e.status as endpoint_status, e.status_reason, e.deleted_at is not null as deleted,
         e.quick, e.last_success_at is not null as succeeded_before, ${endpointToCallColumns},
         exists (select from attempts x where x.delivery_id = d.id and x.run_id = k.run_id) as run_has_attempts,
         a.number as recorded_number, a.status_code as recorded_status_code, a.error_code as recorded_error_code,
         a.error_message as recorded_error_message, a.outcome as recorded_outcome
    from unnest($1::text[], $2::text[], $3::integer[]) with ordinality as k (id, run_id, sequence, nth)
   cross join lateral (select * from deliveries x where x.id = k.id offset 0) d
   cross join lateral (select x.*, x.xmin from endpoints x where x.id = d.endpoint_id offset 0) e
   cross join lateral (select * from events x where x.tenant_id = d.tenant_id and x.id = d.event_id offset 0) v
    left join lateral (select x.*, x.xmin from event_types x where x.tenant_id = d.tenant_id and x.name = d.type offset 0) t on true
    left join lateral (select * from attempts x where x.delivery_id = k.id and x.run_id = k.run_id and x.sequence = k.sequence offset 0) a
      on true`,
};

function toLoaded(row: LoadRow): LoadedDelivery {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    endpointId: row.endpoint_id,
    eventId: row.event_id,
    type: row.type,
    status: row.status,
    reason: row.reason,
    round: row.round,
    attemptCount: row.attempt_count,
    roundAttempts: row.round_attempts,
    lastStatusCode: row.last_status_code,
    lastError: row.last_error,
    wakeRequested: row.wake_requested,
    lease: row.lease,
    mustAsk: row.must_ask,
    slot: row.slot,
    dueInMs: row.due_in_ms ?? 0,
    restsForMs: row.rests_for_ms ?? 0,
    event: {
      createdAt: row.event_created_at,
      apiVersion: row.api_version,
      source: row.source,
      subject: row.subject,
      traceparent: row.traceparent,
      data: row.data,
      typeRules: row.type_rules,
    },
    endpoint: {
      ...toEndpointToCall(row),
      status: row.endpoint_status,
      statusReason: row.status_reason,
      deleted: row.deleted,
      quick: row.quick,
      succeededBefore: row.succeeded_before,
      apiVersion: row.pinned_version,
    },
    runHasAttempts: row.run_has_attempts,
    recorded:
      row.recorded_outcome === null || row.recorded_number === null
        ? null
        : {
            number: row.recorded_number,
            statusCode: row.recorded_status_code,
            errorCode: row.recorded_error_code,
            errorMessage: row.recorded_error_message,
            outcome: row.recorded_outcome,
          },
  };
}
