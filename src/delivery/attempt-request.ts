import { judgeHeaders, type CustomHeaders } from '../domain/custom-headers.js';
import { contentTypes, thinData, writeEnvelope, type EnvelopeFields } from '../domain/envelope.js';
import type { EnvelopeName, PayloadName, SignatureName } from '../domain/profiles.js';
import { messageIdHeaderName } from '../domain/signing.js';
import type { Authorization } from './authorization.js';
import type { OutboundRequest } from './outbound.js';
import { signatureHeaders, UnusableSecretError } from './signature.js';
import { userAgent } from './user-agent.js';

/** What an endpoint's settings say about requests to it. */
export interface RequestEndpoint {
  readonly url: string;
  readonly envelope: EnvelopeName;
  readonly signature: SignatureName;
  /** The endpoint's own additional headers. */
  readonly headers: CustomHeaders;
  /** Absent: it asks for none. */
  readonly authorization?: Authorization;
  readonly timeoutMs: number;
}

export interface AttemptRequestInput {
  readonly delivery: {
    readonly id: string;
    readonly eventId: string;
    readonly tenantId: string;
    readonly type: string;
    /** RFC 3339, UTC, milliseconds. */
    readonly createdAt: string;
    readonly apiVersion: string | null;
    readonly source: string | null;
    readonly subject: string | null;
    /** JSON text, as published. */
    readonly data: string;
  };
  readonly endpoint: RequestEndpoint & { readonly payload: PayloadName };
  /** The endpoint's active secrets in clear, newest first. */
  readonly secrets: readonly string[];
  /** 1, 2, … over all rounds. */
  readonly attemptNumber: number;
  /** Of the trace that the attempt belongs to; null or absent where nobody traces. */
  readonly traceparent?: string | null;
  readonly nowMs: number;
}

/** A request that is no delivery: a verification or a ping. */
export interface SignedRequestInput {
  /** Stands where the delivery's id and the event's id stand in deliveries. */
  readonly messageId: string;
  readonly tenantId: string;
  readonly type: string;
  /** JSON text. */
  readonly data: string;
  /** RFC 3339, UTC, milliseconds. */
  readonly createdAt: string;
  readonly endpoint: RequestEndpoint;
  /** The endpoint's active secrets in clear, newest first. */
  readonly secrets: readonly string[];
  readonly nowMs: number;
}

/** The endpoint's settings don't make a request that may be sent: the attempt fails as `config_invalid`. */
export class AttemptConfigError extends Error {
  override readonly name = 'AttemptConfigError';
}

/**
 * The request of one attempt of a delivery, in the endpoint's envelope and with its signature.
 * @throws {AttemptConfigError} when a secret can't sign, or a header can't be sent.
 */
export function buildAttemptRequest(input: AttemptRequestInput): OutboundRequest {
  const { id: deliveryId, ...event } = input.delivery;
  const data = input.endpoint.payload === 'thin' ? thinData(event.eventId) : event.data;
  return buildRequest({
    ...input,
    fields: { ...event, deliveryId, data },
    headers: {
      'Webhook-Event-Id': event.eventId,
      'Webhook-Attempt': String(input.attemptNumber),
      ...(input.traceparent ? { traceparent: input.traceparent } : {}),
    },
  });
}

/**
 * The request of a verification or ping, as the endpoint would get a delivery.
 * @throws {AttemptConfigError} as above.
 */
export function buildSignedRequest(input: SignedRequestInput): OutboundRequest {
  const { messageId, tenantId, type, data, createdAt } = input;
  const ids = { deliveryId: messageId, eventId: messageId, tenantId };
  return buildRequest({
    ...input,
    fields: { ...ids, type, data, createdAt, apiVersion: null, source: null, subject: null },
    headers: {},
  });
}

interface RequestParts {
  readonly fields: EnvelopeFields;
  /** Beside those that every message has. */
  readonly headers: Readonly<Record<string, string>>;
  readonly endpoint: RequestEndpoint;
  readonly secrets: readonly string[];
  readonly nowMs: number;
}

function buildRequest({ fields, headers, endpoint, secrets, nowMs }: RequestParts): OutboundRequest {
  const { url, envelope, signature, timeoutMs } = endpoint;
  const messageId = fields.deliveryId;
  const { headers: credentials, ...authorization } = endpoint.authorization ?? { headers: {} };
  // Bytes are made once: what is signed is what is sent.
  const body = Buffer.from(writeEnvelope(envelope, fields), 'utf8');
  const message = { messageId, body, secrets, unixSeconds: Math.floor(nowMs / 1_000) };
  return {
    method: 'POST',
    url,
    headers: {
      ...ownHeaders(endpoint.headers),
      ...credentials,
      'Content-Type': contentTypes[envelope],
      'User-Agent': userAgent,
      [messageIdHeaderName]: messageId,
      ...headers,
      ...sign(signature, message),
    },
    body,
    timeoutMs,
    ...authorization,
  };
}

/** They were judged when they were written; a row from elsewhere must not get further than this attempt. */
function ownHeaders(given: CustomHeaders): CustomHeaders {
  const judgement = judgeHeaders(given);
  if (judgement.ok) return judgement.headers;
  const which = judgement.name === null ? 'headers' : `header ${JSON.stringify(judgement.name)}`;
  throw new AttemptConfigError(`The endpoint's ${which} can't be sent: ${judgement.rule}`);
}

function sign(...args: Parameters<typeof signatureHeaders>): Record<string, string> {
  try {
    return signatureHeaders(...args);
  } catch (error) {
    if (error instanceof UnusableSecretError) throw new AttemptConfigError(error.message);
    throw error;
  }
}
