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
 * order of the list, or leads to few rows; those that end in (status, id) are read status by status, and merged.
 */
export function deliveryListStatement(
  columns: string,
  tenantId: string,
  filter: DeliveryFilter,
  page: PageRequest,
): Statement | null {
  const statuses = wantedStatuses(filter);
  if (statuses?.length === 0) return null;
  const ids = idsAround(idPrefixes.delivery, filter);
  const conditions = new Conditions()
    .add('tenant_id = ?', tenantId)
    .add('status = ?', statuses?.length === 1 ? statuses[0] : undefined)
    // One endpoint's failures have their own reasons, which the planner's statistics don't know: its index is the one to use.
    .add(filter.endpointId === undefined ? 'reason = ?' : `reason || '' = ?`, filter.reason)
    .add('endpoint_id = ?', filter.endpointId)
    // Another tenant's endpoint may have a million deliveries: none of them is looked at.
    .add('exists (select from endpoints e where e.id = ? and e.tenant_id = $1)', filter.endpointId)
    .add('event_id = ?', filter.eventId)
    .add('type = ?', filter.type)
    .add('last_status_code = ?', filter.httpStatus)
    .add('created_at >= ?', filter.createdAfter)
    .add('created_at < ?', filter.createdBefore)
    .add('id >= ?', ids.from)
    .add('id <= ?', ids.to);
  const keys = keyset('id', page, conditions.values.length + 1);
  const values = [...conditions.values, ...keys.values];
  const rows = (more: string): string =>
    `select ${columns} from deliveries where true ${conditions.toString()} ${keys.where} ${more} ${keys.order}`;
  if (statuses === null || statuses.length === 1) return { text: rows(''), values };
  const wanted = statuses.map((status) => `'${status}'`).join(', ');
  return {
    text: `select ${columns} from unnest(array[${wanted}]) as w (wanted)
           cross join lateral (${rows('and status = w.wanted')}) d ${keys.order}`,
    values,
  };
}

/** Null: any, and there is nothing to gain from naming them. */
function wantedStatuses({ status, reason, endpointId, eventId }: DeliveryFilter): readonly DeliveryStatus[] | null {
  const possible = reason === undefined ? deliveryStatuses : statusesOfReason[reason];
  if (status !== undefined) return possible.filter((one) => one === status);
  if (endpointId !== undefined && eventId === undefined) return possible;
  return possible.length === 1 ? possible : null;
}
