import type { EntityManager } from 'typeorm';
import { FilteredData } from '../payload/content-filters.js';
import { type ReplaySelection, typeSubject } from './replay-selection.js';

/** Data of so many events are in memory at the same time. */
const batch = 200;

interface Missed {
  readonly id: string;
  readonly data: string;
  readonly accepted_at: Date;
  readonly seq: string;
}

/**
 * The selection, narrowed to what the endpoint's content filter of today wants of the events that it missed. Filters are no SQL: the
 * data is read, some at a time, in the caller's transaction. One more than `maxItems` are named at most.
 */
export async function withContentFilter(
  tx: EntityManager,
  tenantId: string,
  selection: ReplaySelection,
  maxItems: number,
): Promise<ReplaySelection> {
  if (selection.kind !== 'recover') return selection;
  const [endpoint] = await tx.query<{ filter: string | null }[]>(
    'select filter from endpoints where tenant_id = $1 and id = $2 and deleted_at is null',
    [tenantId, selection.endpointId],
  );
  if (!endpoint || endpoint.filter === null) return selection;
  const eventIds: string[] = [];
  let after: Pick<Missed, 'accepted_at' | 'seq'> = { accepted_at: selection.since, seq: '0' };
  while (eventIds.length <= maxItems) {
    const missed: Missed[] = await tx.query<Missed[]>(missedStatement, [
      tenantId,
      selection.endpointId,
      selection.since,
      after.accepted_at,
      after.seq,
    ]);
    for (const { id, data } of missed) if (new FilteredData(data).decide(endpoint.filter) === null) eventIds.push(id);
    const last = missed.at(-1);
    if (!last || missed.length < batch) break;
    after = last;
  }
  return { ...selection, eventIds };
}

const missedStatement = `
  select v.id, v.data, v.accepted_at, v.seq::text
    from endpoints e join events v on v.tenant_id = e.tenant_id
   where e.tenant_id = $1 and e.id = $2 and v.accepted_at >= $3 and (v.accepted_at, v.seq) > ($4, $5::bigint)
     and v.payload_purged_at is null and not v.operational and ${typeSubject} like any (e.event_likes)
     and not exists (select from deliveries d where d.tenant_id = v.tenant_id and d.event_id = v.id and d.endpoint_id = e.id)
   order by v.accepted_at, v.seq limit ${batch}`;
