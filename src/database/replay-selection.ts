import { isTerminal } from '../domain/closed-lists.js';
import { idPrefixes } from '../domain/ids.js';
import { statusesOfReason } from '../domain/reason-statuses.js';
import { idsAround } from './created-range.js';
import type { DeliveryFilter, Statement } from './delivery-list.js';
import type { LetterFilter } from './letter-store.js';
import { Conditions } from './statement.js';

/** What a replay is made of; its kind beside it. */
export type ReplaySelection =
  | { readonly kind: 'ids'; readonly deliveryIds: readonly string[] }
  /** Closed deliveries; where the filter names neither status nor reason, those that failed. */
  | { readonly kind: 'filter'; readonly filter: DeliveryFilter }
  | { readonly kind: 'letters'; readonly letters: readonly LetterKey[] }
  /** Letters that are open. */
  | { readonly kind: 'letters'; readonly filter: Omit<LetterFilter, 'resolution'> }
  /** What failed since then, and what the endpoint missed, by its filters of today. */
  | {
      readonly kind: 'recover';
      readonly endpointId: string;
      readonly since: Date;
      /** Of the events that it missed only these, since its content filter wants no others. Absent: it has none. */
      readonly eventIds?: readonly string[] | null;
    };

export interface LetterKey {
  readonly deliveryId: string;
  readonly round: number;
}

/** A letter that was discarded says that nobody is to send its delivery again. */
const notDiscarded = `not exists (select from dead_letters l where l.delivery_id = d.id and l.round = d.round and l.resolution = 'discarded')`;
const ofDeliveries = `d.id as delivery_id, null::text as event_id, d.endpoint_id, d.round, d.status = 'succeeded' as had_succeeded, d.created_at as at`;

/**
 * The rows of a tenant that a selection names: delivery_id, event_id, endpoint_id, round, had_succeeded, and `at`, the time that
 * orders them.
 */
export function selectionStatement(tenantId: string, selection: ReplaySelection): Statement {
  switch (selection.kind) {
    case 'ids':
      return {
        text: `select ${ofDeliveries} from deliveries d where d.tenant_id = $1 and d.id = any($2)`,
        values: [tenantId, selection.deliveryIds],
      };
    case 'filter':
      return filterStatement(tenantId, selection.filter);
    case 'letters':
      return 'letters' in selection
        ? letterStatement(tenantId, selection.letters)
        : letterFilterStatement(tenantId, selection.filter);
    case 'recover':
      return recoverStatement(tenantId, selection);
  }
}

function filterStatement(tenantId: string, filter: DeliveryFilter): Statement {
  const ids = idsAround(idPrefixes.delivery, filter);
  const conditions = new Conditions()
    .add('d.tenant_id = ?', tenantId)
    .add('d.status = any(?)', closedStatuses(filter))
    .add('d.reason = ?', filter.reason)
    .add('d.endpoint_id = ?', filter.endpointId)
    .add('d.event_id = ?', filter.eventId)
    .add('d.type = ?', filter.type)
    .add('d.last_status_code = ?', filter.httpStatus)
    .add('d.created_at >= ?', filter.createdAfter)
    .add('d.created_at < ?', filter.createdBefore)
    .add('d.id >= ?', ids.from)
    .add('d.id <= ?', ids.to);
  return {
    text: `select ${ofDeliveries} from deliveries d where ${notDiscarded} ${conditions.toString()}`,
    values: conditions.values,
  };
}

function closedStatuses({ status, reason }: DeliveryFilter): readonly string[] {
  const possible = reason === undefined ? [status ?? ('failed' as const)] : statusesOfReason[reason];
  return possible.filter((one) => isTerminal(one) && (status === undefined || one === status));
}

/** Of letters of one delivery the newest. */
const ofLetters = `distinct on (l.delivery_id) l.delivery_id, null::text as event_id, l.endpoint_id, l.round, false as had_succeeded, l.created_at as at`;

function letterStatement(tenantId: string, letters: readonly LetterKey[]): Statement {
  return {
    text: `select ${ofLetters} from unnest($2::text[], $3::integer[]) as n (delivery_id, round)
             join dead_letters l on l.delivery_id = n.delivery_id and l.round = n.round
            where l.tenant_id = $1 order by l.delivery_id, l.round desc`,
    values: [tenantId, letters.map(({ deliveryId }) => deliveryId), letters.map(({ round }) => round)],
  };
}

function letterFilterStatement(tenantId: string, filter: Omit<LetterFilter, 'resolution'>): Statement {
  const conditions = new Conditions()
    .add('l.tenant_id = ?', tenantId)
    .add('l.endpoint_id = ?', filter.endpointId)
    .add('l.event_id = ?', filter.eventId)
    .add('l.type = ?', filter.type)
    .add('l.reason = ?', filter.reason)
    .add('l.last_status_code = ?', filter.httpStatus)
    .add('l.created_at >= ?', filter.createdAfter)
    .add('l.created_at < ?', filter.createdBefore);
  return {
    text: `select ${ofLetters} from dead_letters l where l.resolved_at is null ${conditions.toString()} order by l.delivery_id, l.round desc`,
    values: conditions.values,
  };
}

/** As `eventTypeSubject` writes it. */
export const typeSubject = `((length(v.type) - length(replace(v.type, '.', '')) + 1) || ':' || v.type)`;

/** Notices about Posthorn itself are left out of what was missed: they are no news any more. */
function recoverStatement(
  tenantId: string,
  { endpointId, since, eventIds }: Extract<ReplaySelection, { kind: 'recover' }>,
): Statement {
  return {
    text: `select ${ofDeliveries} from deliveries d
            where d.tenant_id = $1 and d.endpoint_id = $2 and ${notDiscarded}
              and ((d.status = 'failed' and d.updated_at >= $3)
                or (d.status = 'cancelled' and d.reason = 'verification_dropped' and d.created_at >= $3))
           union all
           select null, v.id, e.id, null, false, v.accepted_at
             from endpoints e join events v on v.tenant_id = e.tenant_id
            where e.tenant_id = $1 and e.id = $2 and e.deleted_at is null
              and v.accepted_at >= $3 and v.payload_purged_at is null and not v.operational
              and ${typeSubject} like any (e.event_likes)
              and ($4::text[] is null or v.id = any($4))
              and not exists (select from deliveries d where d.tenant_id = v.tenant_id and d.event_id = v.id and d.endpoint_id = e.id)`,
    values: [tenantId, endpointId, since, eventIds ?? null],
  };
}
