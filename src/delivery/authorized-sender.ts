import { performance } from 'node:perf_hooks';
import type { OutboundAnswer } from './delivery-client.js';
import { isUnsent, type OutboundRequest, type TokenRequest } from './outbound.js';
import type { TokenResult, TokenSource } from './token-source.js';

export interface AuthorizedSenderOptions {
  readonly client: { send(request: OutboundRequest): Promise<OutboundAnswer> };
  readonly tokens: TokenSource;
  readonly now?: () => number;
}

/** Sends requests; one that needs an OAuth 2.0 token gets it first, within the request's own time. */
export class AuthorizedSender {
  constructor(private readonly options: AuthorizedSenderOptions) {}

  /** Never rejects. */
  async send({ token, ...request }: OutboundRequest): Promise<OutboundAnswer> {
    return token === undefined ? this.options.client.send(request) : this.#sendWith(token, request);
  }

  async #sendWith(token: TokenRequest, request: OutboundRequest): Promise<OutboundAnswer> {
    const { client, tokens, now = Date.now } = this.options;
    const startedAt = new Date(now());
    const startMs = performance.now();
    const elapsedMs = () => Math.round(performance.now() - startMs);
    const leftMs = () => Math.max(1, request.timeoutMs - elapsedMs());
    const send = (value: string) =>
      client.send({
        ...request,
        headers: { ...request.headers, Authorization: `Bearer ${value}` },
        timeoutMs: leftMs(),
      });

    const first = await tokens.get(token, leftMs());
    if (!first.ok) return { ...withoutToken(first), startedAt, durationMs: elapsedMs() };
    const answer = await send(first.value);
    if (answer.statusCode !== 401 || first.isFresh) return { ...answer, startedAt, durationMs: elapsedMs() };

    // It may have been revoked: once more with another one. The endpoint has seen two requests then, and the attempt says so.
    tokens.forget(token, first.value);
    const refused = () => ({ ...answer, startedAt, durationMs: elapsedMs() });
    const second = await tokens.get(token, leftMs());
    if (!second.ok) return { ...refused(), errorMessage: `answered 401; then ${second.problem}` };
    const again = await send(second.value);
    return isUnsent(again) ? refused() : { ...again, startedAt, durationMs: elapsedMs(), resent: true };
  }
}

function withoutToken({ problem, unsent }: Extract<TokenResult, { ok: false }>): OutboundAnswer {
  return {
    startedAt: new Date(0),
    durationMs: 0,
    statusCode: null,
    errorCode: unsent === 'proxy_failed' ? 'proxy_failed' : 'token_failed',
    errorMessage: problem,
    responseHeaders: [],
    responseBody: Buffer.alloc(0),
    responseTruncated: false,
    remoteAddress: null,
    resent: false,
    dialled: false,
    ...(unsent === 'no_room' ? { noSlot: true as const } : {}),
  };
}
