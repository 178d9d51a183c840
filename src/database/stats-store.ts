import type { DataSource, EntityManager } from 'typeorm';

/** Sizes of the buckets: those of `date_trunc`, in UTC. */
export const statsSizes = ['minute', 'hour', 'day'] as const;
export type StatsSize = (typeof statsSizes)[number];

export interface StatsWindow {
  readonly tenantId: string;
  /** Null: all endpoints of the tenant, those that were deleted since included. */
  readonly endpointId: string | null;
  readonly from: Date;
  readonly to: Date;
  readonly by: StatsSize;
}

/** Attempts of one bucket, or of the whole window. */
export interface AttemptStats {
  readonly attempts: number;
  readonly delivered: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
  /** Failed attempts by their error code. */
  readonly errors: Readonly<Record<string, number>>;
  /** Attempts that got an answer, by its class: `2xx`, `4xx`, … */
  readonly answers: Readonly<Record<string, number>>;
}

export interface Stats {
  readonly total: AttemptStats;
  /** Buckets with attempts only. */
  readonly buckets: readonly (AttemptStats & { readonly startsAt: Date })[];
  readonly backlog: Backlog;
}

export interface Backlog {
  readonly pending: number;
  readonly retrying: number;
  readonly held: number;
  /** When the oldest delivery was made that waits. */
  readonly oldestAt: Date | null;
}

/** Longer than this nobody waits for a number, and the database has better things to do. */
const patienceMs = 10_000;

export class StatsStore {
  constructor(private readonly db: DataSource) {}

  async of(window: StatsWindow): Promise<Stats> {
    return this.db.transaction(async (tx) => {
      await tx.query(`set local statement_timeout = ${patienceMs}`);
      const rows = await this.attempts(tx, window);
      const total = rows.find(({ bucket }) => bucket === null);
      return {
        total: toStats(total),
        buckets: rows.flatMap((row) => (row.bucket === null ? [] : [{ startsAt: row.bucket, ...toStats(row) }])),
        backlog: await this.backlog(tx, window),
      };
    });
  }

  /** One row a bucket, and one without: the whole window. */
  private async attempts(tx: EntityManager, { tenantId, endpointId, from, to, by }: StatsWindow): Promise<StatsRow[]> {
    return await tx.query<StatsRow[]>(
      `with a as materialized (
         select date_trunc($5, a.started_at) as bucket, a.outcome, a.duration_ms, a.error_code, a.status_code / 100 || 'xx' as answer
           from endpoints e join attempts a on a.endpoint_id = e.id
          where e.tenant_id = $1 and ($2::text is null or e.id = $2) and a.started_at >= $3 and a.started_at < $4
       ), totals as (
         select bucket, count(*)::int as attempts, (count(*) filter (where outcome = 'delivered'))::int as delivered,
                percentile_disc(array[0.5, 0.95, 0.99]) within group (order by duration_ms) as percentiles
           from a group by grouping sets ((bucket), ())
       ), counted as (
         select bucket, 'error' as what, error_code as name, count(*)::int as n from a
          where outcome <> 'delivered' group by grouping sets ((bucket, error_code), (error_code))
         union all
         select bucket, 'answer', answer, count(*)::int from a where answer is not null group by grouping sets ((bucket, answer), (answer))
       ), named as (
         select bucket, json_object_agg(name, n) filter (where what = 'error' and name is not null) as errors,
                json_object_agg(name, n) filter (where what = 'answer') as answers
           from counted group by bucket
       )
       select t.bucket, t.attempts, t.delivered, t.percentiles, n.errors, n.answers
         from totals t left join named n on n.bucket is not distinct from t.bucket
        order by t.bucket`,
      [tenantId, endpointId, from, to, by],
    );
  }

  private async backlog(tx: EntityManager, { tenantId, endpointId }: StatsWindow): Promise<Backlog> {
    const which =
      endpointId === null ? 'd.tenant_id = $1 and $2::text is null' : 'd.tenant_id = $1 and d.endpoint_id = $2';
    const [row] = await tx.query<{ pending: number; retrying: number; held: number; oldest_at: Date | null }[]>(
      `select (select count(*)::int from deliveries d where ${which} and d.status = 'pending') as pending,
              (select count(*)::int from deliveries d where ${which} and d.status = 'retrying') as retrying,
              (select count(*)::int from deliveries d where ${which} and d.status = 'held') as held,
              (select min(o.created_at) from (values ('pending'), ('retrying'), ('held')) s (status), lateral (
                 select d.created_at from deliveries d where ${which} and d.status = s.status order by d.id limit 1) o) as oldest_at`,
      [tenantId, endpointId],
    );
    return {
      pending: row?.pending ?? 0,
      retrying: row?.retrying ?? 0,
      held: row?.held ?? 0,
      oldestAt: row?.oldest_at ?? null,
    };
  }
}

interface StatsRow {
  readonly bucket: Date | null;
  readonly attempts: number;
  readonly delivered: number;
  readonly percentiles: readonly [number, number, number] | null;
  readonly errors: Record<string, number> | null;
  readonly answers: Record<string, number> | null;
}

function toStats(row: StatsRow | undefined): AttemptStats {
  const [p50Ms = null, p95Ms = null, p99Ms = null] = row?.percentiles ?? [];
  return {
    attempts: row?.attempts ?? 0,
    delivered: row?.delivered ?? 0,
    p50Ms,
    p95Ms,
    p99Ms,
    errors: row?.errors ?? {},
    answers: row?.answers ?? {},
  };
}
