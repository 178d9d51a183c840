import { type DeliveryReason, type DeliveryStatus, deliveryStatuses } from '../domain/closed-lists.js';
import { idPrefixes } from '../domain/ids.js';
import { statusesOfReason } from '../domain/reason-statuses.js';
import { type CreatedRange, idsAround } from './created-range.js';
import { keyset, type PageRequest } from './page.js';
import { Conditions } from './statement.js';

export interface DeliveryFilter extends CreatedRange {
  readonly status?: DeliveryStatus | undefined;
  readonly reason?: DeliveryReason | undefined;
  readonly endpointId?: string | undefined;
  readonly eventId?: string | undefined;
  readonly type?: string | undefined;
  readonly httpStatus?: number | undefined;
}

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * A page of a tenant's deliveries, newest first; null where no delivery can match. Every filter has an index that is in the
 * order of the list, or leads to few rows. That of endpoints ends in (status, id): where it is the one to use, it is read status
 * by status, and merged.
 */
export function deliveryListStatement(
  columns: string,
  tenantId: string,
  filter: DeliveryFilter,
  page: PageRequest,
): Statement | null {
  const { status, reason, endpointId, eventId, type, httpStatus } = filter;
  const possible = reason === undefined ? deliveryStatuses : statusesOfReason[reason];
  const statuses = status === undefined ? possible : possible.filter((one) => one === status);
  if (statuses.length === 0) return null;
  const onlyEndpoint =
    endpointId !== undefined && eventId === undefined && type === undefined && httpStatus === undefined;
  // One endpoint's failures have reasons of their own, which the planner's statistics don't know: no index of reasons, then.
  const byReason = onlyEndpoint ? `reason || '' = ?` : 'reason = ?';
  const ids = idsAround(idPrefixes.delivery, filter);
  const conditions = new Conditions()
    .add('tenant_id = ?', tenantId)
    .add('status = ?', statuses.length === 1 ? statuses[0] : undefined)
    .add(byReason, reason)
    .add('endpoint_id = ?', endpointId)
    // Another tenant's endpoint may have a million deliveries: none of them is looked at.
    .add('exists (select from endpoints e where e.id = ? and e.tenant_id = $1)', endpointId)
    .add('event_id = ?', eventId)
    .add('type = ?', type)
    .add('last_status_code = ?', httpStatus)
    .add('created_at >= ?', filter.createdAfter)
    .add('created_at < ?', filter.createdBefore)
    .add('id >= ?', ids.from)
    .add('id <= ?', ids.to);
  const keys = keyset('id', page, conditions.values.length + 1);
  const values = [...conditions.values, ...keys.values];
  const rows = (more: string): string =>
    `select ${columns} from deliveries where true ${conditions.toString()} ${keys.where} ${more} ${keys.order}`;
  if (statuses.length === 1 || !onlyEndpoint) return { text: rows(''), values };
  const wanted = statuses.map((one) => `'${one}'`).join(', ');
  return {
    text: `select ${columns} from unnest(array[${wanted}]) as w (wanted)
           cross join lateral (${rows('and status = w.wanted')}) d ${keys.order}`,
    values,
  };
}
