import type { DeliveryReason } from '../../src/domain/closed-lists.js';
import { deliverFailures } from '../contracts/deliver.js';

const byReason: Partial<Record<DeliveryReason, string>> = {
  attempts_exhausted: deliverFailures.exhausted,
  endpoint_gone: deliverFailures.gone,
  endpoint_disabled: deliverFailures.disabled,
  endpoint_expired: deliverFailures.expired,
  queue_age_exceeded: deliverFailures.queueAge,
  payload_expired: deliverFailures.payloadExpired,
};

/** The failure's name, as an operator reads and filters it in the Web UI. */
export function failureTypeOf(reason: DeliveryReason): string {
  return byReason[reason] ?? deliverFailures.other;
}
