import type { AskedEndpoint } from '../../database/dry-run-store.js';
import { matchesEventFilter } from '../../domain/event-type.js';
import { FilteredData } from '../../payload/content-filters.js';

/** What decides about an event for an endpoint, and how. */
export interface MatchRule {
  /** `events`: its event types. `filter`: its content filter. `status`: it is disabled or expired. */
  readonly decided_by: 'events' | 'filter' | 'status';
  /** The pattern that wants the type, the place in the filter that says no, or the status; null: no pattern wants it. */
  readonly rule: string | null;
}

export interface Unwanted extends MatchRule {
  readonly endpoint_id: string;
  readonly url: string;
}

/** Of endpoints that want the event: the rule; of all others: why not. */
export function explainMatches(
  endpoints: readonly AskedEndpoint[],
  wantedBy: ReadonlySet<string>,
  event: { readonly type: string; readonly data: string },
): { readonly rules: ReadonlyMap<string, MatchRule>; readonly others: readonly Unwanted[] } {
  const data = new FilteredData(event.data);
  const rules = new Map<string, MatchRule>();
  const others: Unwanted[] = [];
  for (const endpoint of endpoints) {
    const rule = explain(endpoint, wantedBy.has(endpoint.id), event.type, data);
    if (wantedBy.has(endpoint.id)) rules.set(endpoint.id, rule);
    else others.push({ endpoint_id: endpoint.id, url: endpoint.url, ...rule });
  }
  return { rules, others };
}

function explain(endpoint: AskedEndpoint, wanted: boolean, type: string, data: FilteredData): MatchRule {
  const pattern = endpoint.events.find((filter) => matchesEventFilter(filter, type)) ?? null;
  if (pattern === null) return { decided_by: 'events', rule: null };
  if (wanted)
    return endpoint.filter === null ? { decided_by: 'events', rule: pattern } : { decided_by: 'filter', rule: null };
  if (endpoint.status === 'disabled' || endpoint.status === 'expired')
    return { decided_by: 'status', rule: endpoint.status };
  return { decided_by: 'filter', rule: data.decide(endpoint.filter) };
}
