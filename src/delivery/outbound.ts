import type { OAuthCredentials } from '../domain/credentials.js';

/** Shown to the endpoint in the TLS handshake. */
export interface ClientCertificate {
  /** PEM: the certificate, and those between it and its authority. */
  readonly certificate: string;
  /** PEM, without a passphrase. */
  readonly privateKey: string;
  /** Names the endpoint and the certificate: connections are shared by no others. */
  readonly poolKey: string;
}

/** An OAuth 2.0 token that a request needs. */
export interface TokenRequest extends Omit<OAuthCredentials, 'type'> {
  readonly endpointId: string;
  /** Names the endpoint and its credentials as they are now: tokens are shared by no others. */
  readonly cacheKey: string;
}

/** One HTTP request as it goes out. */
export interface OutboundRequest {
  readonly method: 'POST' | 'OPTIONS';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
  /** For the whole attempt, from dialling to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Whose request it is, and how many of theirs may be in flight: the endpoint's id and its `max_in_flight`. */
  readonly slot?: { readonly key: string; readonly max: number };
  /** Is fetched before, and goes along as `Authorization: Bearer …`. */
  readonly token?: TokenRequest;
  readonly clientCertificate?: ClientCertificate;
}

/** Nothing was sent, through no fault of the endpoint's: this process has no room, or its proxy failed. */
export function isUnsent({
  noSlot,
  errorCode,
}: {
  readonly noSlot?: true;
  readonly errorCode: string | null;
}): boolean {
  return noSlot === true || errorCode === 'proxy_failed';
}
