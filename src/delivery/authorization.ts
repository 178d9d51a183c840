import { createHash } from 'node:crypto';
import type { Credentials } from '../domain/credentials.js';
import type { ClientCertificate, OutboundRequest } from './outbound.js';

/** What of a request shows who we are, in clear. */
export type Authorization = Pick<OutboundRequest, 'headers' | 'token' | 'clientCertificate'>;

/** As it is kept sealed. */
export interface StoredClientCertificate {
  readonly certificate: string;
  readonly private_key: string;
}

export function authorize(
  endpointId: string,
  credentials: Credentials | null,
  certificate: StoredClientCertificate | null,
): Authorization {
  return {
    ...(credentials === null ? { headers: {} } : credentialsOf(endpointId, credentials)),
    ...(certificate && { clientCertificate: toClientCertificate(endpointId, certificate) }),
  };
}

function credentialsOf(endpointId: string, credentials: Credentials): Pick<Authorization, 'headers' | 'token'> {
  switch (credentials.type) {
    case 'basic':
      return { headers: { Authorization: basicAuthorization(credentials.username, credentials.password) } };
    case 'bearer':
      return { headers: { Authorization: `Bearer ${credentials.token}` } };
    case 'header':
      return { headers: { [credentials.name]: credentials.value } };
    case 'oauth2_client_credentials': {
      const cacheKey = `${endpointId} ${fingerprint(JSON.stringify(credentials))}`;
      return { headers: {}, token: { ...credentials, endpointId, cacheKey } };
    }
  }
}

/** RFC 7617, in UTF-8. */
export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

function toClientCertificate(endpointId: string, stored: StoredClientCertificate): ClientCertificate {
  const { certificate, private_key: privateKey } = stored;
  return { certificate, privateKey, poolKey: `${endpointId} ${fingerprint(`${certificate}\n${privateKey}`)}` };
}

function fingerprint(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('base64url');
}
