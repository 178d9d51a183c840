import type { DataSource } from 'typeorm';
import type { DeliveryReason } from '../domain/closed-lists.js';
import type { AttemptKey } from '../../activities/contracts/delivery-activities.js';
import { failuresUntilDown } from '../domain/pacing.js';
import { mustAsk } from './pacing-sql.js';
import { endpointToCallColumns, type EndpointToCallRow, toEndpointToCall } from './endpoint-to-call.js';
import type { AttemptRecord, AttemptRowOutcome, LoadedDelivery, RecordResult } from './attempt-rows.js';

/** How long after an attempt was due the sweeper looks whether anybody works on it. */
export const sweepGraceMs = 10_000;

/** A change of an endpoint's health that its workflow wasn't told of is told by the sweeper after this long. */
export const healthGraceMs = 5_000;

/** An endpoint's success time is good to this many seconds: writing it more often would make its row hot. */
const successFreshnessSeconds = 10;

/** An attempt is one read and one write: {@link load} and {@link record}. */
export class AttemptStore {
  constructor(private readonly db: DataSource) {}

  /** Everything about the delivery, and the outcome of this attempt if it is recorded already; null when there is no such delivery. */
  async load(key: AttemptKey): Promise<LoadedDelivery | null> {
    const [row] = await this.db.query<LoadRow[]>(loadStatement, [key.deliveryId, key.runId, key.sequence]);
    return row ? toLoaded(row) : null;
  }

  /**
   * Records an attempt with all its consequences, in one statement. Returns null when this attempt was recorded before
   * (then {@link load} tells its outcome).
   *
   * What somebody else did to the row while the request was in flight stays: a closed row stays closed, unless the attempt
   * delivered: then the delivery succeeded, whatever was decided meanwhile. A newer round is never touched.
   */
  async record(attempt: AttemptRecord): Promise<RecordResult | null> {
    const a = attempt;
    const message = a.errorMessage === null ? null : asText(a.errorMessage);
    const quick = a.outcome === 'delivered' && a.durationMs < 1_000;
    const values = [
      a.deliveryId,
      a.runId,
      a.sequence,
      a.id,
      a.round,
      a.startedAt,
      wholeMs(a.durationMs),
      a.statusCode,
      a.errorCode,
      message,
      headersText(a),
      a.responseBody.length > 0 ? a.responseBody : null,
      a.responseTruncated,
      a.remoteAddress,
      a.resent,
      a.outcome,
      a.gone,
      a.refused,
      a.waitMs,
      a.restMs,
      a.letterExpiryMs,
      quick,
      a.probeRestMs,
    ];
    const [row] = await this.db.query<RecordRow[]>(recordStatement, values);
    if (!row) return null;
    return {
      status: row.status,
      reason: row.reason,
      round: row.round,
      attemptCount: row.attempt_count,
      roundAttempts: row.round_attempts,
      number: row.attempt_count,
      waitMs: Math.max(0, Math.ceil(row.wait_ms ?? 0)),
      lastStatusCode: row.last_status_code,
      lastError: row.last_error,
      letter: row.letters > 0,
      endpointGone: row.gone,
      healthChanged: row.health_changed ?? false,
    };
  }

  /**
   * The endpoint rests for longer than the row waits: the row says so, to readers and to the sweeper. `stretch` ≥ 1 spreads the
   * deliveries that wait for one rest, so that they don't come back at one instant.
   */
  async waitForEndpoint(deliveryId: string, stretch: number): Promise<void> {
    await this.db.query(
      `update deliveries d
          set next_attempt_at = now() + (e.not_before - now()) * $2, reason = 'retry_after', updated_at = now(),
              sweep_after = now() + (e.not_before - now()) * $2 + interval '${sweepGraceMs} ms'
         from endpoints e
        where d.id = $1 and e.id = d.endpoint_id and d.status in ('pending', 'retrying') and not d.wake_requested
          and e.not_before > greatest(d.next_attempt_at, now())`,
      [deliveryId, stretch],
    );
  }

  /**
   * The true outcome of an attempt that somebody else has settled as `outcome_unknown` meanwhile: it takes that record's place,
   * and a delivered one closes the row before another request goes out. False when there was no such record.
   */
  async replaceUnknown(attempt: AttemptRecord): Promise<boolean> {
    const a = attempt;
    const rows = await this.db.query<{ number: number }[]>(
      `with a as (
         update attempts set started_at = $4, duration_ms = $5, status_code = $6, error_code = $7, error_message = $8,
                response_headers = $9, response_body = $10, response_truncated = $11, remote_address = $12, resent = $13, outcome = $14
          where delivery_id = $1 and run_id = $2 and sequence = $3 and error_code = 'outcome_unknown'
         returning number, round
       ), d as (
         update deliveries d set status = 'succeeded', reason = 'delivered', last_status_code = $6, last_error = null,
                next_attempt_at = null, sweep_after = null, wake_requested = false, updated_at = now()
           from a where d.id = $1 and d.round = a.round and $14 = 'delivered'
       ), l as (
         update dead_letters set resolved_at = now(), resolution = 'replayed'
          where delivery_id = $1 and resolved_at is null and $14 = 'delivered' and exists (select from a)
       )
       select number from a`,
      [
        a.deliveryId,
        a.runId,
        a.sequence,
        a.startedAt,
        wholeMs(a.durationMs),
        a.statusCode,
        a.errorCode,
        a.errorMessage === null ? null : asText(a.errorMessage),
        headersText(a),
        a.responseBody.length > 0 ? a.responseBody : null,
        a.responseTruncated,
        a.remoteAddress,
        a.resent,
        a.outcome,
      ],
    );
    return rows.length > 0;
  }

  /** A start by hand of a closed row is a redelivery: opens the next round, if the row is still closed in `round`. */
  async openNextRound(deliveryId: string, round: number, reason: DeliveryReason): Promise<void> {
    await this.db.query(
      `update deliveries
          set status = 'pending', reason = $3, round = round + 1, round_attempts = 0, next_attempt_at = now(),
              sweep_after = now() + interval '${sweepGraceMs} ms', wake_requested = false, updated_at = now()
        where id = $1 and round = $2 and status in ('succeeded', 'failed', 'cancelled')
          and exists (select from endpoints e where e.id = endpoint_id and e.deleted_at is null and e.status = 'active')`,
      [deliveryId, round, reason],
    );
  }
}

interface LoadRow extends EndpointToCallRow {
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
  must_ask: boolean;
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

const loadStatement = `
  select d.id, d.tenant_id, d.endpoint_id, d.event_id, d.type, d.status, d.reason, d.round, d.attempt_count, d.round_attempts,
         d.last_status_code, d.last_error, d.wake_requested, d.slot, (d.slot is distinct from 'taken' and ${mustAsk}) as must_ask,
         (extract(epoch from d.next_attempt_at - clock_timestamp()) * 1000)::float8 as due_in_ms,
         (extract(epoch from e.not_before - clock_timestamp()) * 1000)::float8 as rests_for_ms,
         v.created_at as event_created_at, v.api_version, v.source, v.subject, v.traceparent, v.data,
         t.rules as type_rules, e.api_version as pinned_version, e.status as endpoint_status, e.status_reason, e.deleted_at is not null as deleted,
         e.quick, e.last_success_at is not null as succeeded_before, ${endpointToCallColumns},
         exists (select from attempts x where x.delivery_id = d.id and x.run_id = $2) as run_has_attempts,
         a.number as recorded_number, a.status_code as recorded_status_code, a.error_code as recorded_error_code,
         a.error_message as recorded_error_message, a.outcome as recorded_outcome
    from deliveries d
    join endpoints e on e.id = d.endpoint_id
    join events v on v.tenant_id = d.tenant_id and v.id = d.event_id
    left join event_types t on t.tenant_id = d.tenant_id and t.name = d.type
    left join attempts a on a.delivery_id = d.id and a.run_id = $2 and a.sequence = $3
   where d.id = $1`;

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

interface RecordRow {
  status: RecordResult['status'];
  reason: DeliveryReason;
  round: number;
  attempt_count: number;
  round_attempts: number;
  wait_ms: number | null;
  last_status_code: number | null;
  last_error: string | null;
  letters: number;
  gone: boolean;
  health_changed: boolean | null;
}

/** The first 410 changes the endpoint; those that follow say nothing new. */
const becomesGone = `($17 and (status <> 'disabled' or status_reason is distinct from 'gone'))`;

/** The first failure after a success. Of notices about Posthorn itself none counts: a notice must not bring a notice. */
const beginsToFail = `(failing_since is null and (last_success_at is null or $6::timestamptz > last_success_at)
        and not (select operational from d))`;

/** So long as it isn't known to be down, each failure counts; then only those of the one that asks. */
const paceChanges = `(failure_streak < ${failuresUntilDown} or pace = 'probing')`;

/** What the endpoint's workflow is to hear of: a first failure, a recovery, gone, refused. */
const changesHealth = `(case
        when $16 = 'delivered' then failing_since is not null or refused_since is not null or pace = 'probing'
        else ${beginsToFail}
             or ${becomesGone} or ($18 and refused_since is null) end)`;

/**
 * `d` decides what becomes of the row, `a` keeps the attempt, `l` the letter, `e` what the endpoint's health learns.
 * The endpoint row is hot, so `e` matches it only where something changes; it is locked after the delivery's row, as everywhere.
 */
const recordStatement = `
  with d as (
    update deliveries set
      attempt_count = attempt_count + 1,
      round_attempts = round_attempts + case when round = $5 then 1 else 0 end,
      last_status_code = $8::integer,
      last_error = case when $16::text = 'delivered' then null else coalesce($10::text, $9::text) end,
      status = case
        when round <> $5 then status
        when $16 = 'delivered' then 'succeeded'
        when status in ('succeeded', 'failed', 'cancelled') then status
        when $17::boolean or $19::float8 is null then 'failed'
        when status = 'held' then 'held'
        else 'retrying' end,
      reason = case
        when round <> $5 then reason
        when $16 = 'delivered' then 'delivered'
        when status in ('succeeded', 'failed', 'cancelled') then reason
        when $17 then 'endpoint_gone'
        when $19 is null then 'attempts_exhausted'
        when status = 'held' then reason
        when $20::float8 is not null then 'retry_after'
        else 'attempt_failed' end,
      next_attempt_at = case
        when round <> $5 then next_attempt_at
        when $16 = 'delivered' or status in ('succeeded', 'failed', 'cancelled', 'held') or $17 or $19 is null then null
        else now() + $19 * interval '1 ms' end,
      sweep_after = case
        when round <> $5 then sweep_after
        when $16 = 'delivered' or status in ('succeeded', 'failed', 'cancelled', 'held') or $17 or $19 is null then null
        else now() + ($19 + ${sweepGraceMs}) * interval '1 ms' end,
      wake_requested = case when round <> $5 then wake_requested else false end,
      slot = null, held_since = null,
      updated_at = now()
    where id = $1
      and not exists (select from attempts where delivery_id = $1 and run_id = $2 and sequence = $3)
    returning *
  ), a as (
    insert into attempts (id, delivery_id, number, round, run_id, sequence, started_at, duration_ms, status_code, error_code,
                          error_message, response_headers, response_body, response_truncated, remote_address, resent, outcome,
                          endpoint_id)
    select $4, d.id, d.attempt_count, $5, $2, $3, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, d.endpoint_id from d
  ), l as (
    insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, last_status_code,
                              last_error, last_response_headers, last_response_body, expires_at)
    select d.id, d.round, d.tenant_id, d.event_id, d.endpoint_id, d.type, d.reason, d.attempt_count, $8,
           d.last_error, $11, $12, now() + $21 * interval '1 ms'
      from d where d.round = $5 and d.status = 'failed'
    on conflict (delivery_id, round) do nothing
    returning 1
  ), r as (
    update dead_letters set resolved_at = now(), resolution = 'replayed'
     where $16 = 'delivered' and resolved_at is null and delivery_id = (select id from d)
  ), e as (
    update endpoints set
      last_success_at = case when $16 = 'delivered' then greatest(last_success_at, now()) else last_success_at end,
      quick = $22::boolean,
      failing_since = case
        when $16 = 'delivered' then null
        when ${beginsToFail} then $6
        else failing_since end,
      failure_streak = case when $16 = 'delivered' then 0 else least(failure_streak + 1, ${failuresUntilDown}) end,
      pace = case
        when $16 = 'delivered' then case when pace = 'probing' then 'rising' else pace end
        when failure_streak + 1 >= ${failuresUntilDown} then 'probing'
        else pace end,
      rising_since = case when $16 = 'delivered' and pace = 'probing' then now() else rising_since end,
      probe_after = case
        when $16 = 'delivered' then null
        when pace = 'probing' or failure_streak + 1 >= ${failuresUntilDown} then now() + $23::float8 * interval '1 ms'
        else probe_after end,
      refused_since = case when $16 = 'delivered' then null when $18::boolean then coalesce(refused_since, now()) else refused_since end,
      not_before = case
        -- A success that began before the endpoint asked for its rest says nothing about it.
        when $16 = 'delivered' and (failing_since is null or $6::timestamptz >= failing_since) then null
        when $20 is not null then greatest(not_before, now() + $20 * interval '1 ms')
        else not_before end,
      status = case when $17 then 'disabled' else status end,
      status_reason = case when $17 then 'gone' else status_reason end,
      status_changed_at = case when $17 and status <> 'disabled' then now() else status_changed_at end,
      health_version = health_version + (${changesHealth})::int,
      -- Where nobody tells the endpoint's workflow of the change, the sweeper does.
      health_sweep_after = case
        when ${changesHealth} then least(health_sweep_after, now() + interval '${healthGraceMs} ms') else health_sweep_after end
     where id = (select endpoint_id from d)
       and case
         when $16 = 'delivered' then
           failing_since is not null or refused_since is not null or not_before is not null or last_success_at is null
           or (quick and not $22) or last_success_at < now() - interval '${successFreshnessSeconds} s'
           or failure_streak > 0 or pace = 'probing'
         else
           ${beginsToFail} or quick or ${paceChanges}
           or ($18 and refused_since is null) or ${becomesGone} or $20 is not null
       end
    returning health_version, health_seen
  )
  select d.status, d.reason, d.round, d.attempt_count, d.round_attempts, d.last_status_code, d.last_error,
         (extract(epoch from d.next_attempt_at - now()) * 1000)::float8 as wait_ms,
         (select count(*)::int from l) as letters, $17 as gone,
         (select health_version > health_seen from e) as health_changed
    from d`;

/** Postgres text can't hold NUL: what an endpoint sent must never break recording it. */
function asText(text: string): string {
  return text.replaceAll('\u0000', '\uFFFD');
}

const wholeMs = (ms: number): number => Math.max(0, Math.round(ms));

const headersText = ({ responseHeaders }: AttemptRecord): string | null =>
  responseHeaders.length > 0 ? asText(JSON.stringify(responseHeaders)) : null;
