import { sweepGraceMs } from './grace.js';
import { mustWait } from './pacing-sql.js';

/** More than this isn't started by one statement: locks are held for a moment only. */
export const mostAtOnce = 200;
/** What the rate saved up while nothing was started, such as during an outage, counts for no longer than this. */
const savedUpMs = 1_000;

/** The replay with what its rate allows now; locked, so that two workers share the rate, whoever comes first. */
export const replayTurnStatement = `
  select id, tenant_id, status, kind, rate_per_second, requested_by, request_reason, total - started - skipped as waiting,
         greatest(0, floor(extract(epoch from clock_timestamp()
           - greatest(coalesce(paced_until, created_at), clock_timestamp() - interval '${savedUpMs} ms')) * rate_per_second))::int as allowed
    from replays where id = $1 for update`;

/**
 * Starts the next of a replay's items, each at most once: what has to be written about an item and its delivery is one statement.
 * The deliveries' rows are locked in the order of their ids, as everywhere. Parameters: replay, tenant, kind, number of items, ids for
 * new deliveries, key and reason of who asked for it.
 *
 * `j` judges each item as things stand now, `p` decides how the delivery goes on: like a published one, it waits for its turn where
 * its endpoint has a pace. `again` and `fresh` write the deliveries, `l` the letters, `m` the items, `r` the replay.
 */
export const startItemsStatement = `
  with i as materialized (
    select *, row_number() over (order by seq) as nth
      from (select * from replay_items where replay_id = $1 and state = 'waiting' order by seq limit $4 for update) i
  ), d as materialized (
    select d.id, d.event_id, d.type, d.status, d.round from deliveries d
     where d.tenant_id = $2 and d.id in (select delivery_id from i where event_id is null) order by d.id for update
  ), j as materialized (
    select i.seq, i.nth, i.delivery_id, i.event_id, i.endpoint_id, v.type,
           case
             when v.id is null then 'purged'
             when e.deleted_at is not null then 'endpoint_deleted'
             when d.status = 'succeeded' and not (i.had_succeeded and d.round = i.round) then 'succeeded_meanwhile'
             when d.status in ('pending', 'retrying', 'held') then 'in_progress'
             when i.event_id is not null and exists (
               select from deliveries x where x.tenant_id = $2 and x.event_id = i.event_id and x.endpoint_id = i.endpoint_id)
               then 'delivery_exists'
             when $3 = 'letters' and not exists (
               select from dead_letters l where l.delivery_id = i.delivery_id and l.round = i.round and l.resolved_at is null)
               then 'letter_resolved'
             when e.status = 'disabled' then 'endpoint_disabled'
             when e.status = 'expired' then 'endpoint_expired'
             when v.payload_purged_at is not null then 'payload_expired'
           end as note
      from i
      left join d on d.id = i.delivery_id
      left join events v on v.tenant_id = $2 and v.id = coalesce(i.event_id, d.event_id)
      left join endpoints e on e.id = i.endpoint_id
  ), turns as (
    select j.*, row_number() over (partition by endpoint_id order by seq) as turn from j where note is null
  ), p as materialized (
    select t.*, e.url,
           case when e.status = 'active' and not ${mustWait('t.turn')} then 'pending' else 'held' end as status,
           case e.status when 'active' then case when ${mustWait('t.turn')} then 'rate_limited' else 'replayed' end
             when 'paused' then 'endpoint_paused' else 'endpoint_unverified' end as reason
      from turns t join endpoints e on e.id = t.endpoint_id
  ), again as (
    update deliveries d set
      status = p.status, reason = p.reason, round = d.round + 1, round_reason = 'replayed', round_attempts = 0, slot = null, wake_requested = false,
      requested_by = $6, request_reason = $7, updated_at = now(),
      held_since = case when p.reason = 'rate_limited' then now() end,
      next_attempt_at = case when p.status = 'pending' then now() end,
      sweep_after = case when p.status = 'pending' then now() + interval '${sweepGraceMs} ms' end
     from p where p.event_id is null and d.id = p.delivery_id and d.status in ('succeeded', 'failed', 'cancelled')
    returning d.id, d.event_id, d.endpoint_id, d.type, d.status, p.url, p.seq
  ), fresh as (
    insert into deliveries (id, tenant_id, event_id, endpoint_id, type, status, reason, round_reason, requested_by, request_reason, held_since,
                            next_attempt_at, sweep_after)
    select ($5::text[])[p.nth], $2, p.event_id, p.endpoint_id, p.type, p.status, p.reason, 'replayed', $6, $7,
           case when p.reason = 'rate_limited' then now() end,
           case when p.status = 'pending' then now() end,
           case when p.status = 'pending' then now() + interval '${sweepGraceMs} ms' end
      from p where p.event_id is not null
    returning id, event_id, endpoint_id, type, status
  ), l as (
    update dead_letters l set resolved_by = $6, resolved_reason = $7
      from again a where l.delivery_id = a.id and l.resolved_at is null
  ), m as (
    update replay_items i set
      state = case when j.note is null then 'started' else 'skipped' end, note = j.note,
      delivery_id = case when j.note is null and j.event_id is not null then ($5::text[])[j.nth] else i.delivery_id end
     from j where i.replay_id = $1 and i.seq = j.seq
    returning i.state
  ), r as (
    update replays r set
      started = r.started + c.started, skipped = r.skipped + c.skipped, updated_at = now(),
      paced_until = greatest(coalesce(paced_until, created_at), clock_timestamp() - interval '${savedUpMs} ms')
                    + c.started * interval '1 s' / rate_per_second
     from (select count(*) filter (where state = 'started') as started, count(*) filter (where state = 'skipped') as skipped from m) c
    where r.id = $1
  )
  select a.id, $2 as "tenantId", a.endpoint_id as "endpointId", a.event_id as "eventId", a.type, a.url, a.status from again a
  union all
  select f.id, $2, f.endpoint_id, f.event_id, f.type, p.url, f.status from fresh f join p on p.event_id = f.event_id`;
