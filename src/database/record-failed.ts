import { failuresUntilDown } from '../domain/pacing.js';
import type { AttemptRecord, RecordResult } from './attempt-rows.js';
import { type RecordedRow, storedForm, toRecordResult } from './attempt-columns.js';
import type { Database } from './data-source.js';
import { healthGraceMs, sweepGraceMs } from './grace.js';

/**
 * Records one failed attempt with all its consequences, in one statement; null when it was recorded before. What somebody else did
 * to the row while the request was in flight stays: a closed row stays closed. A newer round is never touched.
 */
export async function recordFailed(db: Database, attempt: AttemptRecord): Promise<RecordResult | null> {
  const a = storedForm(attempt);
  const [row] = await db.hot.run<RecordedRow>(failedStatement, [
    a.deliveryId,
    a.runId,
    a.sequence,
    a.id,
    a.round,
    a.startedAt,
    a.durationMs,
    a.statusCode,
    a.errorCode,
    a.errorMessage,
    a.responseHeaders,
    a.responseBody,
    a.responseTruncated,
    a.remoteAddress,
    a.resent,
    a.gone,
    a.refused,
    a.waitMs,
    a.restMs,
    a.letterExpiryMs,
    a.probeRestMs,
    a.blamesEndpoint ?? true,
  ]);
  return row ? toRecordResult(row) : null;
}

/** The first 410 changes the endpoint; those that follow say nothing new. */
const becomesGone = `($16 and (status <> 'disabled' or status_reason is distinct from 'gone'))`;

/** The first failure after a success. Of notices about Posthorn itself none counts: a notice must not bring a notice. */
const beginsToFail = `(failing_since is null and (last_success_at is null or $6::timestamptz > last_success_at)
        and not (select operational from d))`;

/** So long as it isn't known to be down, each failure counts; then only those of the one that asks. */
const paceChanges = `(failure_streak < ${failuresUntilDown} or pace = 'probing')`;

const becomesRefused = `($17::boolean and refused_since is null)`;

/** What the endpoint's workflow is to hear of: a first failure, gone, refused. */
const changesHealth = `(${beginsToFail} or ${becomesGone} or ${becomesRefused})`;

const ends = `status in ('succeeded', 'failed', 'cancelled', 'held') or $16 or $18 is null`;

/**
 * `d` decides what becomes of the row, `a` keeps the attempt, `l` the letter, `e` what the endpoint's health learns.
 * The endpoint row is hot, so `e` matches it only where something changes; it is locked after the delivery's row, as everywhere.
 */
const failedStatement = {
  name: 'record_failed',
  text: `
  with d as (
    update deliveries set
      attempt_count = attempt_count + 1,
      round_attempts = round_attempts + case when round = $5 then 1 else 0 end,
      last_status_code = $8::integer,
      last_error = coalesce($10::text, $9::text),
      status = case
        when round <> $5 or status in ('succeeded', 'failed', 'cancelled') then status
        when $16::boolean or $18::float8 is null then 'failed'
        when status = 'held' then 'held'
        else 'retrying' end,
      reason = case
        when round <> $5 or status in ('succeeded', 'failed', 'cancelled') then reason
        when $16 then 'endpoint_gone'
        when $18 is null then 'attempts_exhausted'
        when status = 'held' then reason
        when $19::float8 is not null then 'retry_after'
        else 'attempt_failed' end,
      next_attempt_at = case
        when round <> $5 then next_attempt_at
        when ${ends} then null
        else now() + $18 * interval '1 ms' end,
      sweep_after = case
        when round <> $5 then sweep_after
        when ${ends} then null
        else now() + ($18 + ${sweepGraceMs}) * interval '1 ms' end,
      wake_requested = case when round <> $5 then wake_requested else false end,
      slot = null, held_since = null, lease_holder = null,
      updated_at = now()
    where id = $1
      and not exists (select from attempts where delivery_id = $1 and run_id = $2 and sequence = $3)
    returning *
  ), a as (
    insert into attempts (id, delivery_id, number, round, run_id, sequence, started_at, duration_ms, status_code, error_code,
                          error_message, response_headers, response_body, response_truncated, remote_address, resent, outcome,
                          endpoint_id)
    select $4, d.id, d.attempt_count, $5, $2, $3, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 'failed', d.endpoint_id from d
  ), l as (
    insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, last_status_code,
                              last_error, last_response_headers, last_response_body, expires_at)
    select d.id, d.round, d.tenant_id, d.event_id, d.endpoint_id, d.type, d.reason, d.attempt_count, $8,
           d.last_error, $11, $12, now() + $20 * interval '1 ms'
      from d where d.round = $5 and d.status = 'failed'
    on conflict (delivery_id, round) do nothing
    returning 1
  ), e as (
    update endpoints set
      quick = false,
      failing_since = case when ${beginsToFail} then $6 else failing_since end,
      failure_streak = least(failure_streak + 1, ${failuresUntilDown}),
      pace = case when failure_streak + 1 >= ${failuresUntilDown} then 'probing' else pace end,
      probe_after = case
        when pace = 'probing' or failure_streak + 1 >= ${failuresUntilDown} then now() + $21::float8 * interval '1 ms'
        else probe_after end,
      refused_since = case when $17 then coalesce(refused_since, now()) else refused_since end,
      not_before = case when $19 is not null then greatest(not_before, now() + $19 * interval '1 ms') else not_before end,
      status = case when $16 then 'disabled' else status end,
      status_reason = case when $16 then 'gone' else status_reason end,
      status_changed_at = case when $16 and status <> 'disabled' then now() else status_changed_at end,
      health_version = health_version + (${changesHealth})::int,
      -- Where nobody tells the endpoint's workflow of the change, the sweeper does.
      health_sweep_after = case
        when ${changesHealth} then least(health_sweep_after, now() + interval '${healthGraceMs} ms') else health_sweep_after end
     where id = (select endpoint_id from d) and $22::boolean
       and (${changesHealth} or quick or ${paceChanges} or $19 is not null)
    returning health_version, health_seen
  )
  select d.status, d.reason, d.round, d.attempt_count, d.round_attempts, d.last_status_code, d.last_error,
         (extract(epoch from d.next_attempt_at - now()) * 1000)::float8 as wait_ms,
         exists (select from l) as letter, $16 as gone,
         (select health_version > health_seen from e) as health_changed
    from d`,
};
