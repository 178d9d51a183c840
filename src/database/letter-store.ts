import type { DataSource } from 'typeorm';
import type { DeliveryReason } from '../domain/closed-lists.js';
import type { LetterResolution } from '../domain/letters.js';
import { clockMarginMs, type CreatedRange } from './created-range.js';
import type { Statement } from './delivery-list.js';
import type { Requester } from './delivery-store.js';
import { keyset, type Page, type PageRequest, toPage } from './page.js';
import { Conditions } from './statement.js';

export interface LetterRow {
  /** A bigint: the order of the list. */
  readonly seq: string;
  readonly delivery_id: string;
  readonly round: number;
  readonly event_id: string;
  readonly endpoint_id: string;
  readonly type: string;
  readonly reason: DeliveryReason;
  readonly attempts: number;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly resolution: LetterResolution | null;
  readonly resolved_at: Date | null;
  readonly resolved_by: string | null;
  readonly resolved_reason: string | null;
}

/** A letter with the last answer and the event, as far as it is still there. */
export interface WholeLetterRow extends LetterRow {
  readonly last_response_headers: string | null;
  readonly last_response_body: Buffer | null;
  readonly event_created_at: Date | null;
  readonly event_source: string | null;
  readonly event_subject: string | null;
  readonly event_api_version: string | null;
  /** Byte for byte as published; null once it was removed. */
  readonly event_data: string | null;
}

export interface LetterFilter extends CreatedRange {
  readonly endpointId?: string | undefined;
  readonly eventId?: string | undefined;
  readonly type?: string | undefined;
  readonly reason?: DeliveryReason | undefined;
  readonly httpStatus?: number | undefined;
  readonly resolution?: LetterResolution | 'open' | undefined;
}

/** Null of a letter that isn't resolved. */
export type DiscardResult =
  | { readonly kind: 'discarded'; readonly letter: LetterRow }
  | { readonly kind: 'already_resolved'; readonly letter: LetterRow };

const columns = [
  'seq, delivery_id, round, event_id, endpoint_id, type, reason, attempts, last_status_code, last_error, created_at, expires_at',
  'resolution, resolved_at',
  // Before it is resolved they name who asked to send it again, and who may still fail to.
  'case when resolved_at is not null then resolved_by end as resolved_by',
  'case when resolved_at is not null then resolved_reason end as resolved_reason',
].join(', ');

/** Dead letters as they are listed, read and resolved. */
export class LetterStore {
  constructor(private readonly db: DataSource) {}

  /** A page of a tenant's letters, newest first. */
  async list(tenantId: string, filter: LetterFilter, page: PageRequest): Promise<Page<LetterRow>> {
    const { text, values } = letterListStatement(tenantId, filter, page);
    return toPage(await this.db.query<LetterRow[]>(text, [...values]), page, ({ seq }) => seq);
  }

  async get(tenantId: string, deliveryId: string, round: number): Promise<WholeLetterRow | null> {
    const [row] = await this.db.query<WholeLetterRow[]>(
      `select l.*, v.created_at as event_created_at, v.source as event_source, v.subject as event_subject,
              v.api_version as event_api_version, v.data as event_data
         from (select ${columns}, tenant_id, last_response_headers, last_response_body from dead_letters
                where tenant_id = $1 and delivery_id = $2 and round = $3) l
         left join events v on v.tenant_id = l.tenant_id and v.id = l.event_id`,
      [tenantId, deliveryId, round],
    );
    return row ?? null;
  }

  /** Nobody will send it again: the letter is resolved, its delivery stays as it is. Null when the tenant has no such letter. */
  async discard(tenantId: string, deliveryId: string, round: number, by: Requester): Promise<DiscardResult | null> {
    const [letter] = await this.db.query<LetterRow[]>(
      `with l as (
         update dead_letters set resolved_at = now(), resolution = 'discarded', resolved_by = $4, resolved_reason = $5
          where tenant_id = $1 and delivery_id = $2 and round = $3 and resolved_at is null returning *)
       select ${columns} from l`,
      [tenantId, deliveryId, round, by.keyId, by.reason],
    );
    if (letter) return { kind: 'discarded', letter };
    const resolved = await this.get(tenantId, deliveryId, round);
    return resolved && { kind: 'already_resolved', letter: resolved };
  }

  /** Resolves letters whose time is over, oldest first; those that are being sent again just now wait for what comes of it. */
  async expireLetters(limit: number): Promise<number> {
    const rows = await this.db.query<unknown[]>(
      `with chosen as materialized (
         select l.delivery_id, l.round from dead_letters l join deliveries d on d.id = l.delivery_id
          where l.expires_at <= now() and l.resolved_at is null and d.status in ('succeeded', 'failed', 'cancelled')
          order by l.expires_at limit $1 for update of l skip locked
       ), l as (
         update dead_letters l set resolved_at = now(), resolution = 'expired', resolved_by = null, resolved_reason = null
           from chosen c where l.delivery_id = c.delivery_id and l.round = c.round returning 1)
       select 1 from l`,
      [limit],
    );
    return rows.length;
  }
}

/** `seq` rises with time, so that letters far from the range, on either side, bound it. */
function letterListStatement(tenantId: string, filter: LetterFilter, page: PageRequest): Statement {
  const { createdAfter: from, createdBefore: to, resolution } = filter;
  const conditions = new Conditions()
    .add('tenant_id = ?', tenantId)
    .add('endpoint_id = ?', filter.endpointId)
    .add('event_id = ?', filter.eventId)
    .add('type = ?', filter.type)
    .add('reason = ?', filter.reason)
    .add('last_status_code = ?', filter.httpStatus)
    .add('resolution = ?', resolution === 'open' ? undefined : resolution)
    .add('created_at >= ?', from)
    .add('created_at < ?', to)
    .add(
      `seq > coalesce((select b.seq from dead_letters b where b.tenant_id = $1 and b.created_at < ? order by b.created_at desc limit 1), 0)`,
      from && new Date(from.getTime() - clockMarginMs),
    )
    .add(
      `seq < coalesce((select b.seq from dead_letters b where b.tenant_id = $1 and b.created_at > ? order by b.created_at limit 1), ${2n ** 63n - 1n})`,
      to && new Date(to.getTime() + clockMarginMs),
    );
  const keys = keyset('seq', page, conditions.values.length + 1);
  const state =
    resolution === undefined ? '' : resolution === 'open' ? 'and resolved_at is null' : 'and resolved_at is not null';
  return {
    text: `select ${columns} from dead_letters where true ${conditions.toString()} ${state} ${keys.where} ${keys.order}`,
    values: [...conditions.values, ...keys.values],
  };
}
