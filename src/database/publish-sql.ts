import type { HotStatement } from './hot-statements.js';
import { settingsVersion } from './attempt-load.js';
import { mustWait } from './pacing-sql.js';

/** A delivery that its dispatcher didn't start is looked at by the sweeper after this long. */
const dispatchGraceMs = 5_000;

/** `m`: which endpoints want which of the events `n`, and as what each delivery is published; `place` numbers them. */
function matches(parameters: { readonly hold: string; readonly chosen: string | null }): string {
  const { hold, chosen } = parameters;
  return `
  c as (
    select n.ord, e.*, e.xmin as row_version, row_number() over (partition by e.id order by n.ord) as nth
      from n
      join endpoints e on e.tenant_id = any($1) and e.tenant_id = n.tenant_id and e.deleted_at is null
                      and e.id is distinct from n.except_id
                      and e.status in ('active', 'paused', 'pending_verification')
                      and n.like_subject like any (case when n.operational then array_remove(e.event_likes, '%') else e.event_likes end)
     ${chosen ? `where ${chosen} is null or n.ord || '/' || e.id = any(${chosen})` : ''}
  ), m as materialized (
    select e.ord, e.id as endpoint_id, e.url, e.filter, e.row_version, row_number() over (order by e.ord, e.id) as place,
           case e.status when 'active' then case when ${mustWait('e.nth')} then 'held' else 'pending' end
             when 'paused' then 'held' else case when ${hold} then 'held' else 'cancelled' end end as status,
           case e.status when 'active' then case when ${mustWait('e.nth')} then 'rate_limited' else 'published' end
             when 'paused' then 'endpoint_paused'
             else case when ${hold} then 'endpoint_unverified' else 'verification_dropped' end end as reason
      from c e
  )`;
}

/** For a dry run. $1 – $4 are columns of the events; $5: what comes for an unverified endpoint is held, else dropped. */
export const matchStatement: HotStatement = {
  name: 'match_endpoints',
  text: `
  with n as (
    select * from unnest($1::text[], $2::text[], $3::boolean[], $4::text[]) with ordinality
      as n (tenant_id, like_subject, operational, except_id, ord)
  ), ${matches({ hold: '$5', chosen: null })}
  select endpoint_id as "endpointId", url, filter, status from m order by place`,
};

/**
 * Events and deliveries in one round trip. Who gets them is decided here, where it can be: where no endpoint has a content filter,
 * which only the process can ask, and the ids for deliveries ($15) are enough. Where it can't, nothing is written, and the rows
 * say who might get them; of these, the second run gets the chosen ones ($16). $1 – $14 are columns of the events; $17 as above.
 */
export const publishStatement: HotStatement = {
  name: 'publish_events',
  text: `
  with n as materialized (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::bytea[],
                         $10::boolean[], $11::text[], $12::text[], $13::text[], $14::text[]) with ordinality
      as n (tenant_id, id, type, source, subject, api_version, data, created_at, body_hash,
            operational, traceparent, lease_holder, like_subject, except_id, ord)
  ), ${matches({ hold: '$17', chosen: '$16::text[]' })},
  ok as materialized (
    select $16::text[] is not null or (count(m.filter) = 0 and count(*) <= cardinality($15::text[])) as decided from m
  ), v as (
    insert into events (tenant_id, id, type, source, subject, api_version, data, created_at, body_hash, operational, traceparent)
    select tenant_id, id, type, source, subject, api_version, data, coalesce(created_at, now()), body_hash, operational, traceparent
      from n where (select decided from ok) order by ord
    on conflict (tenant_id, id) do nothing
    returning tenant_id, id, created_at
  ), d as (
    insert into deliveries (id, tenant_id, event_id, endpoint_id, type, status, published_status, reason, operational, held_since,
                            next_attempt_at, sweep_after, lease_holder)
    select ($15::text[])[m.place], n.tenant_id, n.id, m.endpoint_id, n.type, m.status, m.status, m.reason, n.operational,
           case when m.reason = 'rate_limited' then now() end,
           case when m.status = 'pending' then now() end,
           case when m.status = 'pending' then now() + interval '${dispatchGraceMs} ms' end,
           case when m.status = 'pending' then n.lease_holder end
      from m join n on n.ord = m.ord join v on v.tenant_id = n.tenant_id and v.id = n.id
     order by m.place
  )
  select (n.ord - 1)::int as index, v.created_at as "createdAt", (select decided from ok) as decided,
         m.endpoint_id as "endpointId", m.url, m.filter, m.status, ($15::text[])[m.place] as "deliveryId",
         case when m.status = 'pending' then ${settingsVersion('m.row_version', 't.xmin')} end as settings
    from n left join v on v.tenant_id = n.tenant_id and v.id = n.id left join m on m.ord = n.ord
    left join lateral (select x.xmin from event_types x where m.status = 'pending' and x.tenant_id = n.tenant_id and x.name = n.type offset 0) t
      on true
   order by n.ord, m.place`,
};

/** What was published before under these ids ($1: tenants, $2: ids), and its deliveries. */
export const earlierStatement: HotStatement = {
  name: 'find_events',
  text: `select v.tenant_id, v.id, v.type, v.source, v.subject, v.api_version, v.created_at, v.body_hash,
              coalesce((select json_agg(json_build_object('id', d.id, 'endpointId', d.endpoint_id, 'url', e.url, 'status', d.published_status) order by d.id)
                 from deliveries d join endpoints e on e.id = d.endpoint_id
                where d.tenant_id = v.tenant_id and d.event_id = v.id and d.created_at = v.accepted_at), '[]') as deliveries
         from unnest($1::text[], $2::text[]) as n (tenant_id, id)
        cross join lateral (select * from events x where x.tenant_id = n.tenant_id and x.id = n.id offset 0) v`,
};
