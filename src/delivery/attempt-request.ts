import { validateHeaderName, validateHeaderValue } from 'node:http';
import { defaultEnvelope } from '../domain/envelope.js';
import { signatureHeaderName } from '../domain/signing.js';
import type { OutboundRequest } from './outbound.js';
import { signBody } from './signature.js';
import { userAgent } from './user-agent.js';

export interface AttemptRequestInput {
  readonly delivery: {
    readonly id: string;
    readonly eventId: string;
    readonly type: string;
    /** RFC 3339, UTC, milliseconds. */
    readonly createdAt: string;
    readonly apiVersion: string | null;
    /** JSON text, as published. */
    readonly data: string;
  };
  readonly url: string;
  /** The endpoint's active secrets, in clear. */
  readonly secrets: readonly string[];
  /** 1, 2, … over all rounds. */
  readonly attemptNumber: number;
  readonly nowMs: number;
  readonly timeoutMs: number;
  /** The endpoint's own additional headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The endpoint's settings don't make a request that may be sent: the attempt fails as `config_invalid`. */
export class AttemptConfigError extends Error {
  override readonly name = 'AttemptConfigError';
}

/**
 * The request of one attempt in the `default` profile.
 * @throws {AttemptConfigError} when there is no secret to sign with, or a header can't be sent.
 */
export function buildAttemptRequest(input: AttemptRequestInput): OutboundRequest {
  const { delivery, url, secrets, attemptNumber, nowMs, timeoutMs } = input;
  if (secrets.length === 0 || secrets.includes('')) throw new AttemptConfigError('The endpoint has no usable secret');
  // Bytes are made once: what is signed is what is sent.
  const body = Buffer.from(
    defaultEnvelope({
      deliveryId: delivery.id,
      type: delivery.type,
      createdAt: delivery.createdAt,
      apiVersion: delivery.apiVersion,
      data: delivery.data,
    }),
    'utf8',
  );
  const headers = {
    ...additionalHeaders(input.headers ?? {}),
    'Content-Type': 'application/json',
    'User-Agent': userAgent,
    'Webhook-Id': delivery.id,
    'Webhook-Event-Id': delivery.eventId,
    'Webhook-Attempt': String(attemptNumber),
    [signatureHeaderName]: signBody(body, secrets, Math.floor(nowMs / 1_000)),
  };
  return { method: 'POST', url, headers, body, timeoutMs };
}

// What frames the message, or names its parties, is ours or the HTTP client's.
const reservedHeaders = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
]);

/** They were checked when they were written; a row from elsewhere must not get further than this attempt. */
function additionalHeaders(given: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase();
    if (reservedHeaders.has(lower) || lower.startsWith('webhook-')) continue;
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      throw new AttemptConfigError(`The endpoint's header ${JSON.stringify(name)} can't be sent`);
    }
    // Lower case, so that two spellings of one name don't go out as two headers.
    headers[lower] = value;
  }
  return headers;
}
