import { Client } from 'pg';

export interface Seeded {
  readonly deliveries: number;
  readonly bigTenant: string;
  readonly smallTenant: string;
  /** Of the big tenant: gets most of all, fails like the rest; gets a tenth, and hardly ever fails. */
  readonly busyEndpoint: string;
  readonly healthyEndpoint: string;
  readonly smallEndpoint: string;
  /** One event in the middle, for two endpoints. */
  readonly eventId: string;
  /** Begin and end of what was seeded. */
  readonly from: Date;
  readonly to: Date;
}

const days = 30;
const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** One in so many deliveries belongs to the small tenant. */
const smallShare = 1_000;

const endpoint = (n: number): string => `we_01KC00000000000000000000${String(n).padStart(2, '0')}`;

/** Rows of 30 days, as a big installation has them: most succeeded, a few in every other state, one endpoint busier than all. */
export async function seedLists(databaseUrl: string, deliveries: number, log: (line: string) => void): Promise<Seeded> {
  // A connection of its own: those of the pool have no time for this.
  const client = new Client({ connectionString: databaseUrl, options: '-c timezone=UTC' });
  await client.connect();
  try {
    // Nobody checks millions of foreign keys that are made to fit.
    await client.query(`set session_replication_role = replica`);
    const digits = Array.from(
      { length: 10 },
      (_, i) => `substr('${crockford}', ((ms >> ${45 - 5 * i}) & 31)::int + 1, 1)`,
    );
    await client.query(`
      create function pg_temp.ulid(ms bigint, n bigint) returns text language sql immutable as $$
        select ${digits.join(' || ')} || substr(upper(md5(n::text)), 1, 16) $$`);
    await client.query(
      `insert into endpoints (id, tenant_id, url, events, event_likes, profile, status)
       select 'we_01KC00000000000000000000' || lpad(n::text, 2, '0'), case n when 99 then 'small' else 'big' end,
              'http://127.0.0.1:9/' || n, array['*'], array['%'], 'default', 'active'
         from unnest(array[1, 2, 3, 4, 5, 6, 7, 8, 99]) n`,
    );
    log('events and deliveries');
    // Two deliveries an event. The endpoint, the type and what came of it follow from the number alone.
    await client.query(`
      create temp table seeded as
      select n, at, ms, 'whd_' || pg_temp.ulid(ms, n) as id, tenant_id, 'evt_' || pg_temp.ulid(ms, -(n / 2)) as event_id,
             case when tenant_id = 'small' then '${endpoint(99)}'
                  when n % 10 < 6 then '${endpoint(1)}' when n % 10 = 6 then '${endpoint(2)}'
                  else 'we_01KC00000000000000000000' || lpad((3 + n % 6)::text, 2, '0') end as endpoint_id,
             case when n % 100003 = 7 then 'rare.happened' when n < ${deliveries} / 20 and n % 3 = 0 then 'old.retired'
                  else 'type' || ((n / 2 * 7 + n / 22) % 20) || '.happened' end as type,
             case when n % 10 = 6 then case when n % 50000 = 16 then 40 else 100 end else (n * 7919) % 1000 end as dice
        from (select *, (extract(epoch from at) * 1000)::bigint as ms from (
              select n, case when n % ${smallShare} = 500 then 'small' else 'big' end as tenant_id,
                     date_trunc('second', now()) - (${deliveries} - n / 2 * 2) * interval '${days} days' / ${deliveries} as at
                from generate_series(1, ${deliveries}::bigint) n) t) s`);
    await client.query(`
      insert into events (tenant_id, id, type, data, created_at, accepted_at, body_hash)
      select tenant_id, event_id, min(type), '{"n":' || min(n) || '}', min(at), min(at), '\\x00' from seeded group by tenant_id, event_id order by min(n)`);
    await client.query(`
      insert into deliveries (id, tenant_id, event_id, endpoint_id, type, status, reason, attempt_count, round_attempts, next_attempt_at,
                              last_status_code, last_error, created_at, updated_at)
      select id, tenant_id, event_id, endpoint_id, type,
             case when dice < 2 then 'pending' when dice < 10 then 'retrying' when dice < 15 then 'held' when dice < 20 then 'cancelled'
                  when dice < 60 then 'failed' else 'succeeded' end,
             case when dice < 2 then 'published' when dice < 9 then 'attempt_failed' when dice < 10 then 'retry_after' when dice < 15 then 'endpoint_paused'
                  when dice < 20 then 'cancelled_by_request' when dice < 59 then 'attempts_exhausted'
                  when dice < 60 then case when n % 7 = 0 then 'endpoint_gone' else 'endpoint_disabled' end else 'delivered' end,
             case when dice < 2 then 0 when dice < 60 then 3 else 1 end, 1, case when dice < 10 then now() end,
             case when dice < 2 then null when dice = 59 then case n % 7 when 0 then 410 when 1 then 418 else 404 end
                  when dice < 60 then case n % 3 when 0 then null when 1 then 500 else 503 end when dice < 70 then 204 else 200 end,
             case when dice < 60 then 'answered so' end, at, at
        from seeded order by n`);
    log('attempts and letters');
    await client.query(`
      insert into attempts (id, delivery_id, number, round, run_id, sequence, started_at, duration_ms, status_code, error_code, outcome, endpoint_id)
      select 'att_' || pg_temp.ulid(ms, n * 10 + number), id, number, 1, 'run', number, at, 20, 500, 'http_status', 'failed', endpoint_id
        from seeded, generate_series(1, 3) number where dice between 2 and 59`);
    await client.query(`
      insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, last_status_code, last_error,
                                created_at, expires_at, announced_at, resolved_at, resolution)
      select d.id, 1, d.tenant_id, d.event_id, d.endpoint_id, d.type, d.reason, d.attempt_count, d.last_status_code, d.last_error,
             d.created_at, now() + interval '30 days', d.created_at, case when done is not null then now() end, done
        from deliveries d, lateral (select (array['replayed', 'replayed', 'expired', null, null, null, null, null])[1 + hashtext(d.id) & 7]) r (done)
       where status = 'failed' order by id`);
    await client.query(`drop table seeded`);
    log('statistics');
    await client.query(`vacuum analyze deliveries, dead_letters, attempts, events, endpoints`);
    const {
      rows: [middle],
    } = await client.query<{ event_id: string }>(
      `select event_id from deliveries where tenant_id = 'big' and id > (select id from deliveries order by id offset ${Math.floor(deliveries / 2)} limit 1)
        group by event_id having count(*) = 2 order by min(id) limit 1`,
    );
    const {
      rows: [range],
    } = await client.query<{ from: Date; to: Date }>(
      `select min(created_at) as "from", max(created_at) as "to" from deliveries`,
    );
    if (!middle || !range) throw new Error('nothing was seeded');
    return {
      deliveries,
      bigTenant: 'big',
      smallTenant: 'small',
      busyEndpoint: endpoint(1),
      healthyEndpoint: endpoint(2),
      smallEndpoint: endpoint(99),
      eventId: middle.event_id,
      ...range,
    };
  } finally {
    await client.end();
  }
}
