/** The closed lists of the API. Extend them here and in docs/reference/api.md together. */

export const deliveryStatuses = ['pending', 'retrying', 'succeeded', 'failed', 'held', 'cancelled'] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** A row in one of these states is closed: no further attempt belongs to its round. */
export const terminalStatuses = ['succeeded', 'failed', 'cancelled'] as const satisfies readonly DeliveryStatus[];
export type TerminalStatus = (typeof terminalStatuses)[number];

export function isTerminal(status: DeliveryStatus): status is TerminalStatus {
  return (terminalStatuses as readonly DeliveryStatus[]).includes(status);
}

export const deliveryReasons = [
  'published',
  'endpoint_paused',
  'endpoint_unverified',
  'rate_limited',
  'attempt_failed',
  'retry_after',
  'delivered',
  'attempts_exhausted',
  'queue_age_exceeded',
  'endpoint_gone',
  'endpoint_disabled',
  'endpoint_deleted',
  'endpoint_expired',
  'verification_expired',
  'verification_dropped',
  'payload_expired',
  'cancelled_by_request',
  'terminated_by_operator',
  'redelivery_requested',
  'replayed',
] as const;
export type DeliveryReason = (typeof deliveryReasons)[number];

export const attemptErrorCodes = [
  'http_status',
  'redirect',
  'timeout_connect',
  'timeout_response',
  'timeout_body',
  'dns_failed',
  'connection_refused',
  'connection_reset',
  'tls_failed',
  'blocked_address',
  'proxy_failed',
  'token_failed',
  'protocol_error',
  'config_invalid',
  'outcome_unknown',
] as const;
export type AttemptErrorCode = (typeof attemptErrorCodes)[number];

export const endpointStatuses = ['pending_verification', 'active', 'paused', 'disabled', 'expired'] as const;
export type EndpointStatus = (typeof endpointStatuses)[number];

/** What the owner of an endpoint is told of: kind of notice, and type of the operational event. */
export const noticeTypes = [
  'endpoint.failing',
  'endpoint.refused',
  'endpoint.disabled',
  'endpoint.recovered',
  'endpoint.expiring',
  'endpoint.expired',
  'endpoint.certificate_expiring',
  'endpoint.backlog',
  'endpoint.verification_expired',
  'delivery.exhausted',
] as const;
export type NoticeType = (typeof noticeTypes)[number];

export const mailStatuses = ['none', 'pending', 'sent', 'failed'] as const;
export type MailStatus = (typeof mailStatuses)[number];
