import { createHash } from 'node:crypto';
import { basicAuthorization } from './authorization.js';
import type { OutboundAnswer } from './delivery-client.js';
import { isUnsent, type OutboundRequest, type TokenRequest } from './outbound.js';
import { userAgent } from './user-agent.js';

export type TokenResult =
  /** `isFresh`: fetched for this call, and not found in the cache. */
  | { readonly ok: true; readonly value: string; readonly isFresh: boolean }
  /** `unsent`: nobody was asked, through no fault of the endpoint's or its token server's. */
  | { readonly ok: false; readonly problem: string; readonly unsent: 'no_room' | 'proxy_failed' | null };

/** What came of one request for a token. */
export interface TokenReport {
  readonly endpointId: string;
  readonly statusCode: number | null;
  /** Null: there is a token. */
  readonly problem: string | null;
}

export interface TokenSourceOptions {
  readonly client: { send(request: OutboundRequest): Promise<OutboundAnswer> };
  /** Notes a request for a token, so that nothing goes out unrecorded. Never rejects. */
  readonly record: (report: TokenReport) => Promise<void>;
  readonly now?: () => number;
  readonly maxTokens?: number;
}

/** Of one request for a token, whoever waits for it. */
const requestTimeoutMs = 10_000;
/** A token is not used any more so long before its end: it has to arrive, and clocks differ. */
const skewMs = 30_000;
/** Where the server doesn't say (RFC 6749 only recommends that it does). */
const defaultLifetimeMs = 5 * 60_000;
const maxLifetimeMs = 24 * 3_600_000;
const defaultMaxTokens = 1_000;

/** Those that may be repeated: names of RFC 6749, section 5.2, and RFC 8707, and never a text of the server's own. */
const knownErrors = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'access_denied',
  'server_error',
  'temporarily_unavailable',
]);

/** Fetches OAuth 2.0 tokens with client credentials (RFC 6749, section 4.4) and keeps them, in memory, until they end. */
export class TokenSource {
  readonly #tokens = new Map<string, { readonly value: string; readonly until: number }>();
  readonly #pending = new Map<string, Promise<TokenResult>>();
  readonly #now: () => number;

  constructor(private readonly options: TokenSourceOptions) {
    this.#now = options.now ?? Date.now;
  }

  get size(): number {
    return this.#tokens.size;
  }

  /** The token that is kept, or a new one; who asks at the same time shares one request. Never rejects. */
  async get(request: TokenRequest, waitMs: number): Promise<TokenResult> {
    const kept = this.#tokens.get(request.cacheKey);
    if (kept && kept.until > this.#now()) return { ok: true, value: kept.value, isFresh: false };
    let pending = this.#pending.get(request.cacheKey);
    if (!pending) {
      pending = this.#fetch(request).finally(() => this.#pending.delete(request.cacheKey));
      this.#pending.set(request.cacheKey, pending);
    }
    return within(waitMs, pending, () => failed(request, `timed out after ${Math.round(waitMs)} ms`));
  }

  /** The endpoint refused this token: the next one who asks gets another. */
  forget({ cacheKey }: TokenRequest, value: string): void {
    if (this.#tokens.get(cacheKey)?.value === value) this.#tokens.delete(cacheKey);
  }

  async #fetch(request: TokenRequest): Promise<TokenResult> {
    const answer = await this.options.client.send(toRequest(request));
    if (isUnsent(answer)) {
      const unsent = answer.noSlot ? 'no_room' : 'proxy_failed';
      return { ...failed(request, answer.errorMessage ?? 'not sent'), unsent };
    }
    const read = readAnswer(answer);
    const { endpointId } = request;
    const { statusCode } = answer;
    if (typeof read === 'string') {
      const failure = failed(request, read);
      await this.options.record({ endpointId, statusCode, problem: failure.problem });
      return failure;
    }
    this.#keep(request.cacheKey, read);
    await this.options.record({ endpointId, statusCode, problem: null });
    return { ok: true, value: read.value, isFresh: true };
  }

  #keep(cacheKey: string, { value, lifetimeMs }: Token): void {
    const until = this.#now() + Math.min(lifetimeMs ?? defaultLifetimeMs, maxLifetimeMs) - skewMs;
    this.#tokens.delete(cacheKey);
    if (until <= this.#now()) return;
    this.#tokens.set(cacheKey, { value, until });
    for (const oldest of this.#tokens.keys()) {
      if (this.#tokens.size <= (this.options.maxTokens ?? defaultMaxTokens)) break;
      this.#tokens.delete(oldest);
    }
  }
}

interface Token {
  readonly value: string;
  readonly lifetimeMs: number | null;
}

function toRequest(request: TokenRequest): OutboundRequest {
  const { token_url, client_id, client_secret, client_authentication, scope, audience, cacheKey } = request;
  const form = new URLSearchParams({ grant_type: 'client_credentials' });
  if (scope !== null) form.set('scope', scope);
  if (audience !== null) form.set('audience', audience);
  const inBody = client_authentication === 'client_secret_post';
  if (inBody) {
    form.set('client_id', client_id);
    form.set('client_secret', client_secret);
  }
  return {
    method: 'POST',
    url: token_url,
    headers: {
      'Content-Type': 'application/x-www-form-urlencoded',
      Accept: 'application/json',
      'User-Agent': userAgent,
      ...(inBody ? {} : { Authorization: basicAuthorization(formEncoded(client_id), formEncoded(client_secret)) }),
    },
    body: Buffer.from(form.toString(), 'utf8'),
    timeoutMs: requestTimeoutMs,
    slot: { key: `token ${createHash('sha256').update(cacheKey).digest('base64url')}`, max: 1 },
  };
}

/** RFC 6749, section 2.3.1, asks for this before Basic's own encoding. */
function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

/** The token, or what is wrong with the answer: in our words, since the server's may repeat what we sent. */
function readAnswer({ statusCode, errorMessage, responseBody, responseTruncated }: OutboundAnswer): Token | string {
  const fields = fieldsOf(responseBody);
  if (statusCode === null || statusCode < 200 || statusCode > 299) {
    const error = fields?.['error'];
    const known = typeof error === 'string' && knownErrors.has(error) ? ` (${error})` : '';
    return `${errorMessage ?? 'no answer'}${known}`;
  }
  if (responseTruncated) return errorMessage ?? 'the answer is larger than 16 KiB';
  if (fields === null) return 'the answer is not a JSON object';
  const { access_token: value, token_type: type, expires_in: seconds } = fields;
  if (typeof value !== 'string' || value === '') return 'the answer has no access_token';
  if (!/^[\x21-\x7e]{1,8192}$/.test(value)) return 'its access_token cannot be sent in a header';
  if (type !== undefined && (typeof type !== 'string' || type.toLowerCase() !== 'bearer'))
    return 'its token_type is not Bearer';
  // Some servers send the number as a text.
  const lifetime = typeof seconds === 'string' && /^[0-9]{1,10}$/.test(seconds) ? Number(seconds) : seconds;
  return { value, lifetimeMs: typeof lifetime === 'number' && lifetime >= 0 ? lifetime * 1_000 : null };
}

function fieldsOf(body: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** Names the server by its host only: what else stands in the URL may be a secret. */
function failed({ token_url }: TokenRequest, what: string): Extract<TokenResult, { ok: false }> {
  const host = URL.canParse(token_url) ? new URL(token_url).host : 'the token server';
  return { ok: false, problem: `no token from ${host}: ${what}`, unsent: null };
}

async function within(ms: number, work: Promise<TokenResult>, late: () => TokenResult): Promise<TokenResult> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<TokenResult>((resolve) => {
    timer = setTimeout(() => resolve(late()), Math.max(1, ms));
  });
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
