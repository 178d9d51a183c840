import { performance } from 'node:perf_hooks';
import type { AttemptErrorCode } from '../domain/closed-lists.js';
import { BoundedMap } from '../payload/bounded-map.js';
import { judgeUrl, type AddressPolicy, type UrlJudgement } from './address-policy.js';
import { Connection, poolKey, type ConnectionOptions, type EgressProxy, type Target } from './connection.js';
import { Deadline } from './deadline.js';
import {
  classifyError,
  deadlineError,
  errorCodeOf,
  isConnectionEnd,
  isLocalExhaustion,
  statusError,
  type AttemptError,
} from './error-codes.js';
import { exchange, type Ending } from './exchange.js';
import type { OutboundRequest } from './outbound.js';
import { AddressPinner } from './pinning.js';
import { PinnedPools } from './pinned-pools.js';
import { AnswerReader } from './read-answer.js';
import { findHeaderFault } from './request-headers.js';
import { CachingResolver, resolveBySystem, type Resolve } from './resolver.js';
import { Slots, type SlotClaim } from './slots.js';

export type { OutboundRequest } from './outbound.js';

/** For requests that claim no slot of their own. */
const maxInFlightPerOrigin = 64;
/** URLs whose judgement is remembered: it depends on nothing but the text. */
const mostJudged = 1_000;

export interface OutboundAnswer {
  readonly startedAt: Date;
  /** The endpoint's time, in whole milliseconds: waiting in our own queue doesn't count. */
  readonly durationMs: number;
  /**
   * Judge by this: a 2xx is delivered, even where `errorCode` says that the body didn't end in time or that the headers could
   * not be read. Null when no status came.
   */
  readonly statusCode: number | null;
  readonly errorCode: AttemptErrorCode | null;
  /** Free of header values, bodies and anything that the endpoint wrote. */
  readonly errorMessage: string | null;
  readonly responseHeaders: readonly (readonly [string, string])[];
  /** The bytes as they came: any bytes, compressed ones too. */
  readonly responseBody: Buffer;
  /** What is kept is not the whole answer. */
  readonly responseTruncated: boolean;
  readonly remoteAddress: string | null;
  /** It went out once more, since a pooled connection had ended under it, or another token was needed: the endpoint may have seen two. */
  readonly resent: boolean;
  /** A packet left this machine, or may have. */
  readonly dialled: boolean;
  /** Nothing was sent because this process has no room (connections, file descriptors) or is closing: says nothing about the endpoint. */
  readonly noSlot?: true;
}

export interface DeliveryClientOptions extends AddressPolicy {
  readonly resolve?: Resolve;
  /** The time in milliseconds since 1970. */
  readonly now?: () => number;
  /** PEM certificates to trust beside Node's own list, for endpoints with a private authority. */
  readonly extraCa?: readonly string[];
  /** Through which all calls leave; null: they leave directly. */
  readonly proxy?: EgressProxy | null;
  readonly maxConnections?: number;
  readonly maxIdleConnections?: number;
  /** How long a connection is kept for the next request. */
  readonly idleTimeoutMs?: number;
  /** How long a request waits for a free connection before it is given back with `noSlot`. */
  readonly slotWaitMs?: number;
}

interface Attempt {
  readonly ending: Ending;
  readonly answer: AnswerReader;
  readonly connection: Connection;
  readonly resent: boolean;
}

type Facts = Partial<Omit<OutboundAnswer, 'startedAt' | 'durationMs'>>;

/** The door by which every call to an address that somebody else chose leaves this process. */
export class DeliveryClient {
  readonly #policy: AddressPolicy;
  readonly #now: () => number;
  readonly #connectionOptions: ConnectionOptions;
  readonly #pinner: AddressPinner;
  readonly #pools: PinnedPools;
  readonly #slots: Slots;
  readonly #maxPerKey: number;
  readonly #judged = new BoundedMap<string, UrlJudgement>(mostJudged);
  readonly #inFlight = new Set<Promise<OutboundAnswer>>();
  #closed = false;

  constructor(options: DeliveryClientOptions) {
    this.#policy = { allowHttp: options.allowHttp, allowedCidrs: options.allowedCidrs };
    this.#now = options.now ?? Date.now;
    this.#connectionOptions = {
      policy: this.#policy,
      idleTimeoutMs: Math.min(options.idleTimeoutMs ?? 4_000, 4_000),
      extraCa: options.extraCa ?? [],
      proxy: options.proxy ?? null,
    };
    const resolver = new CachingResolver(options.resolve ?? resolveBySystem, this.#now);
    this.#pinner = new AddressPinner(this.#policy, resolver, this.#now, options.proxy?.resolves);
    this.#pools = new PinnedPools(options.maxIdleConnections ?? 256);
    const total = options.maxConnections ?? 1_024;
    this.#slots = new Slots({ total, waitMs: options.slotWaitMs ?? 250 });
    // Whatever an endpoint is allowed, half of all is left to others.
    this.#maxPerKey = Math.max(1, Math.floor(total / 2));
  }

  /** Sends one request and reads its answer. Never rejects: whatever happens is in the answer. */
  async send(request: OutboundRequest): Promise<OutboundAnswer> {
    const sending = this.#send(request).catch((error: unknown) => this.#refused(unexpected(error)));
    this.#inFlight.add(sending);
    try {
      return await sending;
    } finally {
      this.#inFlight.delete(sending);
    }
  }

  /** Lets the requests in flight end by their own deadlines, then closes all connections. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#inFlight);
    this.#pools.discardAll();
  }

  async #send(request: OutboundRequest): Promise<OutboundAnswer> {
    if (this.#closed) return this.#refused(noRoom('this process is closing'), { noSlot: true });
    const judgement = this.#judged.getOrMake(request.url, () => judgeUrl(request.url, this.#policy));
    if (!judgement.ok) {
      const errorCode = judgement.code === 'url_address' ? 'blocked_address' : 'config_invalid';
      return this.#refused({ errorCode, errorMessage: judgement.message });
    }
    const fault = findFault(request);
    if (fault !== null) return this.#refused({ errorCode: 'config_invalid', errorMessage: fault });

    const release = await this.#slots.acquire(this.#claimOf(judgement.url, request));
    if (release === null) return this.#refused(noRoom('no connection came free'), { noSlot: true });
    const startedAt = new Date(this.#now());
    const startMs = performance.now();
    const deadline = new Deadline(request.timeoutMs);
    let facts: Facts;
    try {
      facts = await this.#call(judgement.url, request, deadline);
    } finally {
      deadline.clear();
      release();
    }
    return complete(startedAt, Math.round(performance.now() - startMs), facts);
  }

  #claimOf({ origin }: URL, { slot = { key: origin, max: maxInFlightPerOrigin } }: OutboundRequest): SlotClaim {
    return { key: slot.key, max: Math.min(slot.max, this.#maxPerKey) };
  }

  async #call(url: URL, request: OutboundRequest, deadline: Deadline): Promise<Facts> {
    const pinned = await this.#pinner.pin(url, deadline, request.timeoutMs);
    if (!pinned.ok) return 'error' in pinned ? pinned.error : outOfResources(pinned.exhausted);
    const target = { url, address: pinned.address, clientCertificate: request.clientCertificate };
    const attempt = await this.#attempt(target, request, deadline);
    const { ending, answer, connection } = attempt;

    if (ending.kind === 'complete') this.#pools.give(connection);
    else connection.discard();
    const outcome = outcomeOf(attempt, request.timeoutMs);
    const unreachable = !connection.tcpConnected && outcome.dialled && !this.#connectionOptions.proxy;
    if (unreachable && pinned.address !== null) this.#pinner.avoid(url, pinned.address);
    return {
      ...outcome,
      responseHeaders: answer.headers,
      responseBody: answer.body,
      remoteAddress: outcome.dialled ? pinned.address : null,
      resent: attempt.resent,
    };
  }

  async #attempt(target: Target, request: OutboundRequest, deadline: Deadline): Promise<Attempt> {
    const pooled = this.#pools.take(poolKey(target));
    let resent = false;
    if (pooled !== null) {
      const answer = new AnswerReader();
      const ending = await exchange(pooled, target.url, request, answer, deadline);
      // The peer may close an idle connection just when a request is on its way: no fault of the endpoint's, so it is sent anew.
      const closedUnderIt = ending.kind === 'error' && !pooled.head.sawBytes && isConnectionEnd(ending.error);
      const neverWritten =
        ending.kind === 'error' && !ending.written && errorCodeOf(ending.error) !== 'UND_ERR_INVALID_ARG';
      if (!closedUnderIt && !neverWritten) return { ending, answer, connection: pooled, resent };
      pooled.discard();
      resent = ending.written;
    }
    const connection = new Connection(target, this.#connectionOptions, (ended) => {
      if (this.#pools.forget(ended)) ended.discard();
    });
    const answer = new AnswerReader();
    const ending = await exchange(connection, target.url, request, answer, deadline);
    return { ending, answer, connection, resent };
  }

  #refused(error: AttemptError, more: Facts = {}): OutboundAnswer {
    return complete(new Date(this.#now()), 0, { ...error, ...more });
  }
}

function outcomeOf({ ending, answer, connection, resent }: Attempt, timeoutMs: number): Facts {
  const dialled = connection.dialled || resent;
  let error: AttemptError | null = null;
  let statusCode = answer.statusCode;
  if (ending.kind === 'deadline') {
    error = deadlineError(ending.phase, timeoutMs);
  } else if (ending.kind === 'error') {
    if (!ending.written && !resent && isLocalExhaustion(ending.error)) return outOfResources(errorCodeOf(ending.error));
    error = classifyError(ending.error, ending.phase, connection.peerEnded);
    // The answer's head broke a rule after its status had been read: the status still says what became of the delivery.
    if (error.errorCode === 'protocol_error') statusCode ??= connection.head.statusCode;
  }
  if (error?.errorCode === 'proxy_failed') {
    if (!resent) return { ...error, dialled: false };
    // The request went out on a connection that ended under it, so it may have arrived.
    error = {
      errorCode: 'connection_reset',
      errorMessage: `connection ended before the answer; then ${error.errorMessage}`,
    };
  }
  if (statusCode !== null) error = statusError(statusCode) ?? error;
  return {
    statusCode,
    errorCode: error?.errorCode ?? null,
    errorMessage: error?.errorMessage ?? null,
    responseTruncated: answer.truncated || (statusCode !== null && ending.kind !== 'complete'),
    dialled,
  };
}

function findFault({ headers, timeoutMs }: OutboundRequest): string | null {
  // setTimeout turns what it can't hold into 1 ms.
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) return 'the timeout is not a positive number of milliseconds';
  return findHeaderFault(headers);
}

function noRoom(cause: string): AttemptError {
  return { errorCode: 'timeout_connect', errorMessage: `not sent: ${cause}` };
}

function outOfResources(code: string): Facts {
  return { ...noRoom(`out of resources (${code})`), dialled: false, noSlot: true };
}

function unexpected(error: unknown): AttemptError {
  return { errorCode: 'protocol_error', errorMessage: `the request failed unexpectedly (${errorCodeOf(error)})` };
}

function complete(startedAt: Date, durationMs: number, facts: Facts): OutboundAnswer {
  return {
    startedAt,
    durationMs,
    statusCode: null,
    errorCode: null,
    errorMessage: null,
    responseHeaders: [],
    responseBody: Buffer.alloc(0),
    responseTruncated: false,
    remoteAddress: null,
    resent: false,
    dialled: false,
    ...facts,
  };
}
