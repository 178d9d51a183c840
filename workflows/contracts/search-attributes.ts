import { defineSearchAttributeKey, type SearchAttributePair } from '@temporalio/common';
import { searchAttributes } from './names.js';

const keys = {
  tenantId: defineSearchAttributeKey(searchAttributes.tenantId, 'KEYWORD'),
  endpointId: defineSearchAttributeKey(searchAttributes.endpointId, 'KEYWORD'),
  eventType: defineSearchAttributeKey(searchAttributes.eventType, 'KEYWORD'),
  eventId: defineSearchAttributeKey(searchAttributes.eventId, 'KEYWORD'),
};

export type Labels = { readonly [label in keyof typeof keys]?: string };

/** What a workflow is found by: the same whoever writes it, the start or the run itself. */
export function labelAttributes(labels: Labels): SearchAttributePair[] {
  return (Object.keys(keys) as (keyof typeof keys)[]).flatMap((label) => {
    const value = labels[label];
    return value === undefined ? [] : [{ key: keys[label], value }];
  });
}
