import type { EndpointToCall } from '../database/endpoint-to-call.js';
import type { Credentials } from '../domain/credentials.js';
import { effectiveSettings, type EffectiveSettings } from '../domain/endpoint-settings.js';
import { authorize, type Authorization, type StoredClientCertificate } from './authorization.js';

export interface SealedTexts {
  /** @throws when the ring has no such key, or the text was altered or moved. */
  open(sealed: string, context: string): string;
}

/** An endpoint as requests need it, with its secrets in clear: it stays in memory. */
export interface OpenedEndpoint extends EffectiveSettings {
  readonly url: string;
  readonly payload: 'full' | 'thin';
  readonly headers: Readonly<Record<string, string>>;
  readonly authorization: Authorization;
  /** Newest first. */
  readonly secrets: readonly string[];
}

/** Context of an endpoint's sealed headers: a text that was moved from another column or row doesn't open. */
export const headersContext = (endpointId: string): string => `${endpointId}/headers`;
/** The same of its credentials. */
export const credentialsContext = (endpointId: string): string => `${endpointId}/credentials`;
/** The same of its client certificate and key. */
export const clientCertificateContext = (endpointId: string): string => `${endpointId}/client-certificate`;
/** The same of the token by which somebody may consent later. */
export const consentContext = (endpointId: string): string => `${endpointId}/consent`;

/** @throws when something can't be opened. */
export function openEndpoint(
  endpointId: string,
  endpoint: EndpointToCall,
  sealed: SealedTexts,
  retryWaitsMs: readonly number[] | null,
): OpenedEndpoint {
  const { url, payload, sealedHeaders, sealedCredentials, sealedClientCertificate, sealedSecrets } = endpoint;
  const open = (text: string | null, context: (endpointId: string) => string): unknown =>
    text === null ? null : JSON.parse(sealed.open(text, context(endpointId)));
  return {
    ...effectiveSettings(endpoint, retryWaitsMs),
    url,
    payload,
    headers: (open(sealedHeaders, headersContext) ?? {}) as Record<string, string>,
    authorization: authorize(
      endpointId,
      open(sealedCredentials, credentialsContext) as Credentials | null,
      open(sealedClientCertificate, clientCertificateContext) as StoredClientCertificate | null,
    ),
    secrets: sealedSecrets.map((text) => sealed.open(text, endpointId)),
  };
}
