import type { AttemptErrorCode } from '../domain/closed-lists.js';

/** How far a request had come. */
export type Phase = 'resolve' | 'proxy' | 'connect' | 'tls' | 'response' | 'body';

export interface AttemptError {
  readonly errorCode: AttemptErrorCode;
  /** Made of our own words and error codes only: never of header values, bodies or what an endpoint wrote. */
  readonly errorMessage: string;
}

/** The connect path refuses to dial an address. */
export class BlockedAddressError extends Error {
  readonly code = 'POSTHORN_BLOCKED_ADDRESS';
  constructor(readonly kind: string) {
    super('address refused');
  }
}

/** undici wants to connect again: a connection of ours dials once, so that nothing is ever sent unseen. */
export class SpentConnectionError extends Error {
  readonly code = 'POSTHORN_SPENT_CONNECTION';
}

/** The proxy did not let us through: says nothing about the endpoint. */
export class ProxyError extends Error {
  readonly code = 'POSTHORN_PROXY';
  /** @param what it did, in our own words. */
  constructor(readonly what: string) {
    super(`the proxy ${what}`);
  }
}

/** Endless interim answers. */
export class InterimFloodError extends Error {
  readonly code = 'POSTHORN_INTERIM_FLOOD';
}

const words: Readonly<Record<Phase, string>> = {
  resolve: 'while resolving the name',
  proxy: 'while waiting for the proxy',
  connect: 'while connecting',
  tls: 'during the TLS handshake',
  response: 'before the answer',
  body: "in the answer's body",
};

/** The peer, or the network, ended the connection. */
const ended = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ETIMEDOUT']);
const unreachable = new Set([
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
]);
const invalid = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH']);
/** This machine has run out of something: says nothing about the endpoint. */
const exhausted = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);

export function errorCodeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'unknown';
}

export function isConnectionEnd(error: unknown): boolean {
  return ended.has(errorCodeOf(error));
}

export function isLocalExhaustion(error: unknown): boolean {
  return exhausted.has(errorCodeOf(error));
}

/** @param peerEnded whether the peer closed its side: undici reports its own refusals under the same code. */
export function classifyError(error: unknown, phase: Phase, peerEnded: boolean): AttemptError {
  const code = errorCodeOf(error);
  if (error instanceof BlockedAddressError) return blocked(error.kind);
  if (error instanceof ProxyError) return proxyFailed(error.message);
  if (error instanceof InterimFloodError) return { errorCode: 'protocol_error', errorMessage: 'endless 1xx answers' };
  if (invalid.has(code)) return { errorCode: 'config_invalid', errorMessage: `the request cannot be sent (${code})` };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return { errorCode: 'tls_failed', errorMessage: `the certificate is for another name (${code})` };
  // Our own certificate or key: OpenSSL refused it before anything was sent.
  if (code.startsWith('ERR_OSSL_'))
    return { errorCode: 'config_invalid', errorMessage: `the client certificate cannot be used (${code})` };
  if (/^ERR_(SSL|TLS)_/.test(code)) return tlsFailed(code);
  switch (phase) {
    case 'resolve':
      return { errorCode: 'dns_failed', errorMessage: `the host's name could not be resolved (${code})` };
    case 'proxy':
      return proxyFailed(`the proxy failed (${code})`);
    case 'connect':
      if (code === 'ETIMEDOUT') return { errorCode: 'timeout_connect', errorMessage: `no connection (${code})` };
      if (ended.has(code))
        return { errorCode: 'connection_reset', errorMessage: `connection ended ${words.connect} (${code})` };
      if (unreachable.has(code))
        return { errorCode: 'connection_refused', errorMessage: `the address cannot be reached (${code})` };
      return { errorCode: 'connection_refused', errorMessage: `connection refused (${code})` };
    case 'tls':
      if (ended.has(code))
        return { errorCode: 'connection_reset', errorMessage: `connection ended ${words.tls} (${code})` };
      return tlsFailed(code);
    case 'response':
    case 'body':
      if (ended.has(code) && (code !== 'UND_ERR_SOCKET' || peerEnded))
        return { errorCode: 'connection_reset', errorMessage: `connection ended ${words[phase]} (${code})` };
      if (code === 'UND_ERR_HEADERS_OVERFLOW')
        return { errorCode: 'protocol_error', errorMessage: "the answer's headers are larger than 64 KiB" };
      return { errorCode: 'protocol_error', errorMessage: `the answer is not valid HTTP/1.1 (${code})` };
  }
}

export function deadlineError(phase: Phase, timeoutMs: number): AttemptError {
  const errorMessage = `timed out after ${timeoutMs} ms ${words[phase]}`;
  switch (phase) {
    case 'proxy':
      return proxyFailed(errorMessage);
    case 'resolve':
    case 'connect':
    case 'tls':
      return { errorCode: 'timeout_connect', errorMessage };
    case 'response':
      return { errorCode: 'timeout_response', errorMessage };
    case 'body':
      return { errorCode: 'timeout_body', errorMessage };
  }
}

export function blocked(kind: string): AttemptError {
  return { errorCode: 'blocked_address', errorMessage: `the host's address is ${kind} and must not be called` };
}

/** Null for 2xx. */
export function statusError(statusCode: number): AttemptError | null {
  if (statusCode >= 200 && statusCode <= 299) return null;
  if (statusCode >= 300 && statusCode <= 399)
    return { errorCode: 'redirect', errorMessage: `answered ${statusCode}; redirects are never followed` };
  return { errorCode: 'http_status', errorMessage: `answered ${statusCode}` };
}

function proxyFailed(errorMessage: string): AttemptError {
  return { errorCode: 'proxy_failed', errorMessage };
}

function tlsFailed(code: string): AttemptError {
  return { errorCode: 'tls_failed', errorMessage: `no trusted TLS connection (${code})` };
}
