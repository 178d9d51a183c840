import type { DataSource } from 'typeorm';
import type { DeliveryReason, DeliveryStatus, EndpointStatus } from '../domain/closed-lists.js';

export interface DatabaseGauges {
  readonly backlog: readonly {
    readonly status: DeliveryStatus;
    readonly count: number;
    /** How long the one that is due the longest has been due; null where none is. */
    readonly due_seconds: number | null;
  }[];
  readonly overdue_seconds: number | null;
  readonly letters: readonly { readonly reason: DeliveryReason; readonly count: number }[];
  readonly endpoints: readonly { readonly status: EndpointStatus; readonly count: number }[];
  readonly mails: readonly { readonly status: 'pending' | 'failed'; readonly count: number }[];
}

export interface PoolUse {
  readonly used: number;
  readonly idle: number;
  readonly waiting: number;
}

/** No scrape takes a connection for longer. */
const statementTimeoutMs = 2_000;

/** Each part walks an index that holds only what is open: the past costs nothing. */
const gaugeStatement = `
  with swept as materialized (
    select status, count(*)::int as count, min(next_attempt_at) as due_at, min(sweep_after) as sweep_at
      from deliveries where sweep_after is not null group by status
  ), held as materialized (
    select count(*)::int as count,
           (select min(held_since) from deliveries where status = 'held' and reason = 'rate_limited') as due_at
      from deliveries where status = 'held'
  ), backlog as (
    select status, count, due_at from swept union all select 'held', count, due_at from held
  )
  select (select coalesce(json_agg(json_build_object('status', status, 'count', count,
                   'due_seconds', greatest(0, extract(epoch from now() - due_at))::float8)), '[]') from backlog) as backlog,
         (select greatest(0, extract(epoch from now() - min(sweep_at)))::float8 from swept) as overdue_seconds,
         (select coalesce(json_agg(l), '[]') from (
            select reason, count(*)::int as count from dead_letters where resolved_at is null group by reason) l) as letters,
         (select coalesce(json_agg(e), '[]') from (
            select status, count(*)::int as count from endpoints where deleted_at is null group by status) e) as endpoints,
         (select coalesce(json_agg(m), '[]') from (
            select mail_status as status, count(*)::int as count from notices where mail_status in ('pending', 'failed')
             group by mail_status) m) as mails`;

/** What only the database knows, for `/metrics`. */
export class GaugeStore {
  constructor(private readonly db: DataSource) {}

  read(): Promise<DatabaseGauges> {
    return this.db.transaction(async (tx) => {
      await tx.query(`set local statement_timeout = ${statementTimeoutMs}`);
      const [row] = await tx.query<DatabaseGauges[]>(gaugeStatement);
      if (!row) throw new Error('the database told nothing');
      return row;
    });
  }

  poolUse(): PoolUse {
    const { master } = this.db.driver as unknown as {
      master?: { totalCount: number; idleCount: number; waitingCount: number };
    };
    if (!master) return { used: 0, idle: 0, waiting: 0 };
    const { totalCount, idleCount, waitingCount } = master;
    return { used: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }
}
