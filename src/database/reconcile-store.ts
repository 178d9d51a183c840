import type { DataSource } from 'typeorm';
import { insertLetters } from './letters-sql.js';
import type {
  ComparedRows,
  CompareInput,
  ReconcilePlan,
  ReconcileReport,
} from '../../activities/contracts/reconcile-activities.js';
import type { Findings, Gap } from '../domain/findings.js';
import { idPrefixes } from '../domain/ids.js';
import { idsAround } from './created-range.js';
import { typeSubject } from './event-feed-store.js';
import { endpointsWithHeld } from './sweep-store.js';

/** So far back everything is looked at, on every run. */
const windowMs = 24 * 3_600_000;
/** What is younger than this may just be happening. */
const settleMs = 2 * 60_000;
/** So late a row of the sweeper's is worth a word. */
const overdueMs = 5 * 60_000;
const heldMs = 60 * 60_000;
/** Starts are listed by Temporal's clock, and a little late. */
const overlapMs = 10 * 60_000;
/** The report says so for so long that Temporal knew more than Postgres. */
const lostShownMs = 7 * 24 * 3_600_000;
const shown = 10;
const counted = 10_000;
const batch = 2_000;
const reportName = 'reconciliation';

const interval = (ms: number): string => `interval '${ms} ms'`;

/** Compares what was accepted with what became of it. */
export class ReconcileStore {
  constructor(
    private readonly db: DataSource,
    private readonly letterExpiryMs: number,
  ) {}

  async plan(): Promise<ReconcilePlan> {
    const [row] = await this.db.query<{ now: Date }[]>('select now() as now');
    const now = row?.now ?? new Date();
    const last = await this.lastReport();
    const from = new Date(now.getTime() - windowMs);
    const lastStart = last ? Date.parse(last.startedAt) - overlapMs : 0;
    return {
      startedAt: now.toISOString(),
      from: from.toISOString(),
      deliveriesAfter: last?.deliveriesAfter ?? null,
      eventsAfter: last?.eventsAfter ?? null,
      // In a restored database the last report is old too, so what happened since the backup is compared.
      workflowsFrom: new Date(last ? lastStart : from.getTime()).toISOString(),
      lost: last?.lost && now.getTime() - Date.parse(last.lost.foundAt) < lostShownMs ? last.lost : null,
    };
  }

  /** The last run's report; null before the first one. Also for `/readyz` and metrics. */
  async lastReport(): Promise<ReconcileReport | null> {
    const [row] = await this.db.query<{ value: string }[]>('select value from engine_state where name = $1', [
      reportName,
    ]);
    return row ? (JSON.parse(row.value) as ReconcileReport) : null;
  }

  async keep(report: ReconcileReport): Promise<void> {
    await this.db.query(
      `insert into engine_state (name, value) values ($1, $2)
       on conflict (name) do update set value = excluded.value, updated_at = now()`,
      [reportName, JSON.stringify(report)],
    );
  }

  async repairWaiting(): Promise<Findings> {
    const repaired = {
      waiting_unswept: await this.found(`
        update deliveries set sweep_after = greatest(coalesce(next_attempt_at, now()), now())
         where id in (select id from deliveries where status in ('pending', 'retrying') and sweep_after is null
                       order by id limit ${counted} for update skip locked)
        returning id`),
      letter_of_success: await this.found(`
        update dead_letters l set resolved_at = now(), resolution = 'replayed'
          from deliveries d
         where l.resolved_at is null and d.id = l.delivery_id and d.status = 'succeeded' and d.updated_at < now() - ${interval(settleMs)}
           and l.created_at > now() - ${interval(windowMs)}
        returning d.id`),
    };
    const gaps = {
      waiting_overdue: await this.found(`
        select id from deliveries where sweep_after < now() - ${interval(overdueMs)} order by sweep_after limit ${counted}`),
      held_too_long: await this.found(`
        select o.id from (${endpointsWithHeld}) h join endpoints e on e.id = h.endpoint_id, lateral (
                 select d.id, d.updated_at from deliveries d where d.endpoint_id = e.id and d.status = 'held' order by d.id limit 1) o
         where e.status = 'active' and e.deleted_at is null and e.pace = 'open' and coalesce(e.not_before, now()) <= now()
           and e.status_changed_at < now() - ${interval(heldMs)} and o.updated_at < now() - ${interval(heldMs)}
         limit ${counted}`),
      letter_without_failure: await this.found(`
        select d.id from dead_letters l join deliveries d on d.id = l.delivery_id
         where l.resolved_at is null and l.created_at between now() - ${interval(windowMs)} and now() - ${interval(settleMs)}
           and d.round = l.round and d.status not in ('failed', 'succeeded')
         limit ${counted}`),
    };
    return findings(repaired, gaps);
  }

  /** One batch of the window's deliveries: what they say against their attempts and letters. */
  async compareDeliveries({ from, after }: CompareInput): Promise<ComparedRows> {
    const range = idsAround(idPrefixes.delivery, {
      createdAfter: new Date(from),
      createdBefore: new Date(Date.now() - settleMs),
    });
    const [row] = await this.db.query<
      { looked: number; furthest: string | null; unsent: string[]; letterless: string[] }[]
    >(
      `with looked as materialized (
         select * from deliveries where id > $1 and id < $2 order by id limit ${batch}
       ), unsent as (
         select id from looked w where status = 'succeeded' and updated_at < now() - ${interval(settleMs)}
            and not exists (select from attempts a where a.delivery_id = w.id and a.outcome = 'delivered')
       ), letters as (${insertLetters(
         `looked w where status = 'failed' and updated_at < now() - ${interval(settleMs)}
            and not exists (select from dead_letters l where l.delivery_id = w.id and l.round = w.round)`,
         '$3',
       )}
         returning delivery_id
       )
       select (select count(*)::int from looked) as looked, (select max(id) from looked) as furthest,
              array(select id from unsent) as unsent, array(select delivery_id from letters) as letterless`,
      [after ?? range.from ?? '', range.to ?? '', this.letterExpiryMs],
    );
    const { looked, furthest, unsent, letterless } = row!;
    return {
      examined: looked,
      after: looked < batch ? null : furthest,
      ...findings({ failed_without_letter: letterless }, { succeeded_without_attempt: unsent }),
    };
  }

  /**
   * One batch of the window's events: those that an endpoint should have got. Only endpoints that have not changed since a minute
   * before the event are sure to have wanted it; of those with a content filter nothing is known without the data.
   */
  async compareEvents({ from, after }: CompareInput): Promise<ComparedRows> {
    const [row] = await this.db.query<{ looked: number; furthest: string | null; missing: string[] }[]>(
      `with looked as materialized (
         select tenant_id, id, type, accepted_at, operational, seq from events
          where payload_purged_at is null and accepted_at < now() - ${interval(settleMs)}
            and (accepted_at, seq) > (coalesce(split_part($1, '|', 1)::timestamptz, $2::timestamptz), coalesce(split_part($1, '|', 2)::bigint, 0))
          order by accepted_at, seq limit ${batch}
       )
       select (select count(*)::int from looked) as looked,
              (select accepted_at::text || '|' || seq from looked order by accepted_at desc, seq desc limit 1) as furthest,
              array(select v.id from looked v join endpoints e on e.tenant_id = v.tenant_id
                     where not v.operational and e.deleted_at is null and e.status = 'active'
                       and greatest(e.created_at, e.updated_at, e.status_changed_at) < v.accepted_at - interval '1 minute'
                       and e.filter is null and ${typeSubject} like any (e.event_likes)
                       and not exists (select from deliveries d
                                        where d.tenant_id = v.tenant_id and d.event_id = v.id and d.endpoint_id = e.id)) as missing`,
      [after, from],
    );
    const { looked, furthest, missing } = row!;
    return {
      examined: looked,
      after: looked < batch ? null : furthest,
      ...findings({}, { event_without_delivery: missing }),
    };
  }

  /** Those of the ids that no delivery has. */
  async unknownDeliveries(ids: readonly string[]): Promise<string[]> {
    const rows = await this.db.query<{ id: string }[]>(
      `select x.id from unnest($1::text[]) x (id) where not exists (select from deliveries d where d.id = x.id)`,
      [ids],
    );
    return rows.map(({ id }) => id);
  }

  private async found(statement: string): Promise<string[]> {
    const rows = await this.db.query<{ id: string }[]>(`with f as (${statement}) select id from f`);
    return rows.map(({ id }) => id);
  }
}

type FoundIds = Partial<Record<Gap, readonly string[]>>;

function findings(repaired: FoundIds, gaps: FoundIds): Findings {
  const some = (found: FoundIds) => Object.entries(found).filter(([, ids]) => ids.length > 0);
  const count = (found: FoundIds) => Object.fromEntries(some(found).map(([kind, ids]) => [kind, ids.length]));
  return {
    repaired: count(repaired),
    gaps: count(gaps),
    examples: Object.fromEntries(some({ ...repaired, ...gaps }).map(([kind, ids]) => [kind, ids.slice(0, shown)])),
  };
}
