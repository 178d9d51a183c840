import type { AttemptRecord, RecordResult } from './attempt-rows.js';
import { type RecordedRow, storedForm, toRecordResult } from './attempt-columns.js';
import type { Database } from './data-source.js';
import { healthGraceMs } from './grace.js';

/** An endpoint's success time is good to this many seconds: writing it more often would make its row hot. */
const successFreshnessSeconds = 10;

/**
 * Records delivered attempts, of one delivery each, in one statement; null where an attempt was recorded before. It isn't refused
 * by what was decided meanwhile: a closed delivery has succeeded all the same. A newer round is never touched.
 */
export async function recordDelivered(
  db: Database,
  attempts: readonly AttemptRecord[],
): Promise<(RecordResult | null)[]> {
  const rows = attempts.map(storedForm);
  const column = <T>(pick: (attempt: (typeof rows)[number]) => T): T[] => rows.map(pick);
  const recorded = await db.hot.run<RecordedRow & { id: string }>(deliveredStatement, [
    column((a) => a.deliveryId),
    column((a) => a.runId),
    column((a) => a.sequence),
    column((a) => a.id),
    column((a) => a.round),
    column((a) => a.startedAt),
    column((a) => a.durationMs),
    column((a) => a.statusCode),
    column((a) => a.errorMessage),
    column((a) => a.responseHeaders),
    column((a) => a.responseBody),
    column((a) => a.responseTruncated),
    column((a) => a.remoteAddress),
    column((a) => a.resent),
    attempts.map(({ durationMs }) => durationMs < 1_000),
  ]);
  const byDelivery = new Map(recorded.map((row) => [row.id, row]));
  return attempts.map(({ deliveryId }) => {
    const row = byDelivery.get(deliveryId);
    return row ? toRecordResult(row) : null;
  });
}

/** What the endpoint's workflow is to hear of: a recovery. */
const recovers = `(failing_since is not null or refused_since is not null or pace = 'probing')`;

/**
 * `d` decides what becomes of the rows, `a` keeps the attempts, `r` resolves the letters, `g` sums up what each endpoint did and
 * `e` what its health learns of it. The endpoint row is hot, so `e` matches it only where something changes; it is locked after the
 * deliveries' rows, as everywhere.
 */
const deliveredStatement = {
  name: 'record_delivered',
  text: `
  with n as materialized (
    select * from unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::integer[], $6::timestamptz[], $7::integer[], $8::integer[],
                         $9::text[], $10::text[], $11::bytea[], $12::boolean[], $13::text[], $14::boolean[], $15::boolean[])
      as n (delivery_id, run_id, sequence, attempt_id, of_round, started_at, duration_ms, status_code, error_message,
            response_headers, response_body, response_truncated, remote_address, resent, was_quick)
  ), d as (
    update deliveries d set
      attempt_count = d.attempt_count + 1,
      round_attempts = d.round_attempts + (d.round = n.of_round)::int,
      last_status_code = n.status_code,
      last_error = null,
      status = case when d.round = n.of_round then 'succeeded' else d.status end,
      reason = case when d.round = n.of_round then 'delivered' else d.reason end,
      next_attempt_at = case when d.round = n.of_round then null else d.next_attempt_at end,
      sweep_after = case when d.round = n.of_round then null else d.sweep_after end,
      wake_requested = d.wake_requested and d.round <> n.of_round,
      slot = null, held_since = null, lease_holder = null,
      updated_at = now()
     from n
    where d.id = any($1) and n.delivery_id = d.id
      and not exists (select from attempts x where x.delivery_id = d.id and x.run_id = n.run_id and x.sequence = n.sequence)
    returning d.id, d.endpoint_id, d.status, d.reason, d.round, d.attempt_count, d.round_attempts, d.next_attempt_at, n.*
  ), a as (
    insert into attempts (id, delivery_id, number, round, run_id, sequence, started_at, duration_ms, status_code, error_message,
                          response_headers, response_body, response_truncated, remote_address, resent, outcome, endpoint_id)
    select attempt_id, id, attempt_count, of_round, run_id, sequence, started_at, duration_ms, status_code, error_message,
           response_headers, response_body, response_truncated, remote_address, resent, 'delivered', endpoint_id from d
  ), r as (
    update dead_letters set resolved_at = now(), resolution = 'replayed'
     where delivery_id = any($1) and resolved_at is null and delivery_id in (select id from d)
  ), g as (
    select endpoint_id, max(started_at) as started_at, (array_agg(was_quick order by started_at desc))[1] as was_quick
      from d group by endpoint_id
  ), e as (
    update endpoints e set
      last_success_at = greatest(last_success_at, now()),
      quick = g.was_quick,
      failing_since = null,
      failure_streak = 0,
      pace = case when pace = 'probing' then 'rising' else pace end,
      rising_since = case when pace = 'probing' then now() else rising_since end,
      probe_after = null,
      refused_since = null,
      -- A success that began before the endpoint asked for its rest says nothing about it.
      not_before = case when failing_since is null or g.started_at >= failing_since then null else not_before end,
      health_version = health_version + ${recovers}::int,
      -- Where nobody tells the endpoint's workflow of the change, the sweeper does.
      health_sweep_after = case
        when ${recovers} then least(health_sweep_after, now() + interval '${healthGraceMs} ms') else health_sweep_after end
     from g
    where e.id = any(array(select endpoint_id from d)) and e.id = g.endpoint_id
      and (failing_since is not null or refused_since is not null or not_before is not null or last_success_at is null
           or (quick and not g.was_quick) or last_success_at < now() - interval '${successFreshnessSeconds} s'
           or failure_streak > 0 or pace = 'probing')
    returning e.id, health_version > health_seen as changed
  )
  select d.id, d.status, d.reason, d.round, d.attempt_count, d.round_attempts, d.status_code as last_status_code,
         null as last_error, false as letter, false as gone,
         (extract(epoch from d.next_attempt_at - now()) * 1000)::float8 as wait_ms,
         (select e.changed from e where e.id = d.endpoint_id) as health_changed
    from d`,
};
