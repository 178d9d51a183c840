import { defineSearchAttributeKey, type SearchAttributePair } from '@temporalio/common';
import type { DeliveryLabels } from '../../activities/contracts/delivery-activities.js';
import { searchAttributes } from '../contracts/names.js';

export const searchAttributeKeys = {
  tenantId: defineSearchAttributeKey(searchAttributes.tenantId, 'KEYWORD'),
  endpointId: defineSearchAttributeKey(searchAttributes.endpointId, 'KEYWORD'),
  eventType: defineSearchAttributeKey(searchAttributes.eventType, 'KEYWORD'),
  eventId: defineSearchAttributeKey(searchAttributes.eventId, 'KEYWORD'),
};

export function labelAttributes(labels: DeliveryLabels): SearchAttributePair[] {
  return [
    { key: searchAttributeKeys.tenantId, value: labels.tenantId },
    { key: searchAttributeKeys.endpointId, value: labels.endpointId },
    { key: searchAttributeKeys.eventType, value: labels.eventType },
    { key: searchAttributeKeys.eventId, value: labels.eventId },
  ];
}
