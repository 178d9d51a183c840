import type { EndpointSettings } from '../domain/endpoint-settings.js';
import type { EnvelopeName, SignatureName } from '../domain/profiles.js';

/** All of an endpoint that a request to it is made of; what is secret is still sealed. */
export interface EndpointToCall extends EndpointSettings {
  readonly url: string;
  readonly payload: 'full' | 'thin';
  /** Null: the configuration's. */
  readonly maxInFlight: number | null;
  readonly sealedHeaders: string | null;
  readonly sealedCredentials: string | null;
  readonly sealedClientCertificate: string | null;
  /** The live ones of the kind that its signature needs, newest first. */
  readonly sealedSecrets: readonly string[];
}

export interface EndpointToCallRow {
  readonly url: string;
  readonly profile: string;
  readonly envelope: EnvelopeName | null;
  readonly signature: SignatureName | null;
  readonly payload: 'full' | 'thin';
  readonly timeout_ms: number | null;
  readonly retry_waits_ms: number[] | null;
  readonly max_in_flight: number | null;
  readonly sealed_headers: string | null;
  readonly sealed_credentials: string | null;
  readonly sealed_client_certificate: string | null;
  readonly sealed_secrets: string[] | null;
}

/** Columns of {@link EndpointToCallRow}, from endpoints `e`. */
export const endpointToCallColumns = `
  e.url, e.profile, e.envelope, e.signature, e.payload, e.timeout_ms, e.retry_waits_ms, e.max_in_flight, e.sealed_headers,
  e.sealed_credentials, e.sealed_client_certificate,
  (select array_agg(s.sealed order by s.seq desc) from endpoint_secrets s
    where s.endpoint_id = e.id and s.type = case e.signature when 'standard_webhooks_ed25519' then 'ed25519' else 'hmac' end
      and (s.expires_at is null or s.expires_at > now())) as sealed_secrets`;

export function toEndpointToCall(row: EndpointToCallRow): EndpointToCall {
  return {
    url: row.url,
    profile: row.profile,
    envelope: row.envelope,
    signature: row.signature,
    payload: row.payload,
    timeoutMs: row.timeout_ms,
    retryWaitsMs: row.retry_waits_ms,
    maxInFlight: row.max_in_flight,
    sealedHeaders: row.sealed_headers,
    sealedCredentials: row.sealed_credentials,
    sealedClientCertificate: row.sealed_client_certificate,
    sealedSecrets: row.sealed_secrets ?? [],
  };
}
