import type { DataSource } from 'typeorm';
import type { NoticeStore } from './notice-store.js';

/** An endpoint that is down has letters in every window: its owner gets no more mails of them than this. */
const mailEveryMs = 24 * 3_600_000;
const shownDeliveries = 10;

/** Letters, seen from the endpoint's queue workflow. */
export class DeadLetterStore {
  constructor(
    private readonly db: DataSource,
    private readonly notices: NoticeStore,
  ) {}

  /**
   * Marks all unannounced letters of the endpoint, and tells its owner of them in one notice, in one transaction: so each is
   * announced once. Letters of operational events are no news, else a notice could bring the next.
   */
  async announce(endpointId: string): Promise<{ announced: number; open: number }> {
    return this.db.transaction(async (tx) => {
      const [row] = await tx.query<AnnouncedRow[]>(
        `with told as (
           update dead_letters set announced_at = now() where endpoint_id = $1 and announced_at is null
           returning delivery_id, round, reason, created_at
         ), news as (
           select t.* from told t join deliveries d on d.id = t.delivery_id where not d.operational
         )
         select (select count(*)::int from told) as announced,
                (select count(*)::int from dead_letters where endpoint_id = $1 and resolved_at is null) as open,
                (select count(*)::int from news) as news,
                (select json_object_agg(reason, n) from (select reason, count(*)::int as n from news group by reason) r) as reasons,
                (select json_agg(delivery_id) from (select delivery_id from news order by created_at, delivery_id limit ${shownDeliveries}) i) as ids,
                (select min(created_at) from news) as since,
                (select delivery_id || '/' || round from news order by created_at, delivery_id limit 1) as first`,
        [endpointId],
      );
      if (row && row.news > 0) {
        await this.notices.createFromOutside(tx, {
          endpointId,
          type: 'delivery.exhausted',
          // Each letter is announced once, so the first of them names the window.
          episode: row.first ?? '',
          data: { count: row.news, open: row.open, reasons: row.reasons, delivery_ids: row.ids, since: row.since },
          mailRestMs: mailEveryMs,
        });
      }
      return { announced: row?.announced ?? 0, open: row?.open ?? 0 };
    });
  }
}

interface AnnouncedRow {
  readonly announced: number;
  readonly open: number;
  readonly news: number;
  readonly reasons: Readonly<Record<string, number>> | null;
  readonly ids: readonly string[] | null;
  readonly since: Date | null;
  readonly first: string | null;
}
