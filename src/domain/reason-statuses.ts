import type { DeliveryReason, DeliveryStatus } from './closed-lists.js';

/** The statuses that a delivery with this reason can have: who asks for a reason asks for these. */
export const statusesOfReason: Readonly<Record<DeliveryReason, readonly DeliveryStatus[]>> = {
  published: ['pending'],
  endpoint_paused: ['held'],
  endpoint_unverified: ['held'],
  rate_limited: ['held', 'pending', 'retrying'],
  attempt_failed: ['retrying'],
  retry_after: ['pending', 'retrying'],
  delivered: ['succeeded'],
  attempts_exhausted: ['failed'],
  queue_age_exceeded: ['failed'],
  endpoint_gone: ['failed'],
  endpoint_disabled: ['failed'],
  endpoint_deleted: ['cancelled'],
  endpoint_expired: ['failed'],
  verification_expired: ['failed'],
  verification_dropped: ['cancelled'],
  payload_expired: ['failed'],
  cancelled_by_request: ['cancelled'],
  terminated_by_operator: ['cancelled'],
  redelivery_requested: ['pending', 'retrying'],
  replayed: ['pending', 'retrying'],
};
