import type { DataSource } from 'typeorm';
import type { NoticeStore } from './notice-store.js';
import { ratePerSecond } from './pacing-sql.js';

export interface BacklogRules {
  /** Fewer waiting deliveries are no backlog. */
  readonly atLeast: number;
  /** One warning an endpoint and window. */
  readonly windowMs: number;
}

interface Backlog {
  readonly endpoint_id: string;
  readonly size: number;
  readonly before: number | null;
  readonly oldest_at: Date;
  readonly rate: number | null;
  readonly window: string;
}

/** Deliveries that wait for their turn in growing number: their owner should hear of it before they grow too old. */
export class BacklogStore {
  constructor(
    private readonly db: DataSource,
    private readonly notices: NoticeStore,
    private readonly rules: BacklogRules,
  ) {}

  /** Looks at these endpoints, and tells the owners of those whose backlog grew since the last look. Returns how many. */
  async warn(endpointIds: readonly string[]): Promise<number> {
    if (endpointIds.length === 0) return 0;
    let told = 0;
    for (const backlog of await this.look(endpointIds)) {
      const { endpoint_id: endpointId, size, before, oldest_at: oldestAt, rate, window } = backlog;
      if (size < this.rules.atLeast || before === null || size <= before) continue;
      const data = {
        size,
        oldest_at: oldestAt.toISOString(),
        rate_per_second: rate,
        // At the rate that it takes; without a limit nobody can tell.
        estimated_seconds: rate === null ? null : Math.ceil(size / rate),
      };
      const created = await this.db.transaction((tx) =>
        this.notices.createFromOutside(tx, { endpointId, type: 'endpoint.backlog', episode: window, data }),
      );
      if (created) told += 1;
    }
    return told;
  }

  /** The backlog now and at the last look. */
  private look(endpointIds: readonly string[]): Promise<Backlog[]> {
    return this.db.query<Backlog[]>(
      `with now_waiting as (
         select endpoint_id, count(*)::int as size, min(held_since) as oldest_at from deliveries
          where endpoint_id = any($1) and status = 'held' and reason = 'rate_limited' group by endpoint_id
       ), before as (select endpoint_id, backlog from endpoint_paces where endpoint_id = any($1) and backlog_at > now() - interval '1 h'
       ), noted as (
         insert into endpoint_paces as p (endpoint_id, backlog, backlog_at) select endpoint_id, size, now() from now_waiting
         on conflict (endpoint_id) do update set backlog = excluded.backlog, backlog_at = excluded.backlog_at)
       select w.endpoint_id, w.size, b.backlog as before, w.oldest_at, ${ratePerSecond} as rate,
              floor(extract(epoch from now()) * 1000 / $2::float8)::text as window
         from now_waiting w join endpoints e on e.id = w.endpoint_id left join before b on b.endpoint_id = w.endpoint_id`,
      [endpointIds, this.rules.windowMs],
    );
  }
}
