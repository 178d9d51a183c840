import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, rootCertificates } from 'node:tls';
import { Client, type buildConnector } from 'undici';
import type { ProxySettings } from '../config/proxy-url.js';
import { judgeAddress, literalAddress, type AddressPolicy } from './address-policy.js';
import { AnswerHead } from './answer-head.js';
import { BlockedAddressError, InterimFloodError, SpentConnectionError, type Phase } from './error-codes.js';
import type { ClientCertificate } from './outbound.js';
import { openTunnel } from './proxy-tunnel.js';

export interface ConnectionOptions {
  readonly policy: AddressPolicy;
  readonly idleTimeoutMs: number;
  /** PEM certificates to trust beside the public ones. */
  readonly extraCa: readonly string[];
  /** Null: endpoints are dialled directly. */
  readonly proxy?: EgressProxy | null;
}

export interface EgressProxy extends ProxySettings {
  /** It looks names up itself, and we judge no more than what stands in a URL. */
  readonly resolves: boolean;
}

export const maxHeaderSize = 64 * 1024;

/** Where a request goes: the URL's origin, and the one address that was judged for it. */
export interface Target {
  readonly url: URL;
  /** Null: the proxy looks the name up. */
  readonly address: string | null;
  readonly clientCertificate?: ClientCertificate | undefined;
}

/**
 * Pools are kept by this: a name that moves to another address never meets a socket to the old one, and nobody meets a socket
 * on which somebody else has shown their certificate.
 */
export function poolKey({ url, address, clientCertificate }: Target): string {
  return `${url.origin} ${address ?? 'proxy'} ${clientCertificate?.poolKey ?? ''}`;
}

/** `proxy`: the way to the proxy. `tunnel`: what goes through it. */
export type DialStage = 'direct' | 'proxy' | 'tunnel';

/**
 * Refuses or dials `target.address`, directly or through the proxy. It is undici's `connect` function, not a `lookup`, because Node never calls lookups for
 * numeric hosts. It dials once.
 */
export function pinnedConnector(
  target: Target,
  options: Pick<ConnectionOptions, 'policy' | 'extraCa' | 'proxy'>,
  onDial: (socket: Socket, stage: DialStage) => void = () => {},
): buildConnector.connector {
  let used = false;
  return (_options, callback) => {
    const fail = (error: Error) => queueMicrotask(() => callback(error, null));
    if (used) return fail(new SpentConnectionError('this connection has ended'));
    used = true;
    const refusal = judgeTarget(target, options);
    if (refusal !== null) return fail(refusal);
    /** Dials, or throws; `event` says that the socket can be used. */
    const use = (dial: () => Socket, stage: DialStage, event: string | null): void => {
      let socket: Socket;
      try {
        socket = dial();
      } catch (error) {
        return fail(error instanceof Error ? error : new Error('cannot dial'));
      }
      onDial(socket, stage);
      if (event === null) return callback(null, socket);
      let answered = false;
      const answer = (error: Error | null) => {
        if (answered) return;
        answered = true;
        if (error) callback(error, null);
        else callback(null, socket);
      };
      socket.setNoDelay(true);
      // The listener stays: a destroyed socket may still emit an error, which would end the process if nobody listened.
      socket.on('error', answer);
      socket.once(event, () => answer(null));
    };
    const { url, address } = target;
    const tls = url.protocol === 'https:';
    const to = { host: address ?? withoutBrackets(url.hostname), port: Number(url.port || (tls ? 443 : 80)) };
    const { proxy, extraCa } = options;
    if (!proxy) {
      use(() => (tls ? dialTls(target, to, extraCa) : connectTcp(to)), 'direct', tls ? 'secureConnect' : 'connect');
      return;
    }
    openTunnel({ ...to, proxy, extraCa, onDial: (socket) => onDial(socket, 'proxy') }, (error, socket) => {
      if (socket === null) return callback(error ?? new Error('no tunnel'), null);
      if (!tls) return use(() => socket, 'tunnel', null);
      use(() => dialTls(target, { socket }, extraCa).once('close', () => socket.destroy()), 'tunnel', 'secureConnect');
    });
  };
}

function judgeTarget(
  { url, address }: Target,
  { policy, proxy }: Pick<ConnectionOptions, 'policy' | 'proxy'>,
): BlockedAddressError | null {
  // What it says is what judgeUrl found: there is no number to judge.
  if (address === null) return proxy?.resolves ? null : new BlockedAddressError('unknown');
  const judgement = judgeAddress(address, policy);
  if (!judgement.ok) return new BlockedAddressError(judgement.kind);
  if (url.protocol === 'http:' && !mayUseHttp(policy, judgement.loopback)) return new BlockedAddressError(httpNotLocal);
  return null;
}

/** What an address is that `mayUseHttp` refuses. */
export const httpNotLocal = 'not on this machine (http is allowed to this machine only)';

export function mayUseHttp({ allowHttp }: AddressPolicy, loopback: boolean): boolean {
  return allowHttp === 'on' || (allowHttp === 'loopback' && loopback);
}

/** @throws where the client certificate can't be used. */
function dialTls(
  { url, clientCertificate }: Target,
  to: { readonly host: string; readonly port: number } | { readonly socket: Socket },
  extraCa: readonly string[],
): Socket {
  return connectTls({
    ...to,
    // The certificate is checked against the name in the URL, whatever address is dialled; SNI carries no numbers or final dot.
    ...(literalAddress(url) === null
      ? { servername: url.hostname.replace(/\.$/, '') }
      : // Without an address of its own, a socket in a tunnel would be checked against none.
        'socket' in to
        ? { host: withoutBrackets(url.hostname) }
        : {}),
    ALPNProtocols: ['http/1.1'],
    // Said aloud, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
    rejectUnauthorized: true,
    ...(extraCa.length > 0 ? { ca: [...rootCertificates, ...extraCa] } : {}),
    ...(clientCertificate && { cert: clientCertificate.certificate, key: clientCertificate.privateKey }),
  });
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** One undici client with one socket, to one address, dialled once. */
export class Connection {
  readonly key: string;
  readonly head = new AnswerHead();
  readonly client: Client;
  #socket: Socket | null = null;
  #tcpConnected = false;
  #ended = false;
  readonly #byProxy: boolean;

  constructor(target: Target, options: ConnectionOptions, onEnd: (connection: Connection) => void) {
    this.key = poolKey(target);
    this.#byProxy = Boolean(options.proxy);
    this.client = new Client(target.url.origin, {
      connect: pinnedConnector(target, options, (socket, stage) => this.#adopt(socket, stage)),
      maxHeaderSize,
      pipelining: 1,
      keepAliveTimeout: options.idleTimeoutMs,
      // An endpoint's Keep-Alive header may shorten the time, not lengthen it.
      keepAliveMaxTimeout: options.idleTimeoutMs,
      // The attempt has one deadline of its own.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.client.on('disconnect', () => {
      this.#ended = true;
      onEnd(this);
    });
    // undici reports what its handlers throw as an event, which would end the process if nobody listened.
    (this.client as unknown as NodeJS.EventEmitter).on('error', () => this.discard());
  }

  /** Whether a packet left, or may have left, this machine. */
  get dialled(): boolean {
    return this.#socket !== null;
  }

  /** To the endpoint: what goes on between us and a proxy doesn't count. */
  get tcpConnected(): boolean {
    return this.#tcpConnected;
  }

  get connectPhase(): Phase {
    if (this.#tcpConnected) return 'tls';
    return this.#byProxy ? 'proxy' : 'connect';
  }

  /** The peer closed its side. */
  get peerEnded(): boolean {
    return this.#socket?.readableEnded ?? false;
  }

  get isUsable(): boolean {
    const socket = this.#socket;
    return !this.#ended && socket !== null && !socket.destroyed && !socket.readableEnded && socket.writable;
  }

  discard(): void {
    this.#socket?.destroy();
    void this.client.destroy().catch(() => {});
  }

  #adopt(socket: Socket, stage: DialStage): void {
    this.#socket = socket;
    if (stage === 'proxy') return;
    if (stage === 'tunnel') this.#tcpConnected = true;
    else socket.once('connect', () => (this.#tcpConnected = true));
    const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
    socket.read = (size?: number): Buffer | null => {
      for (;;) {
        const chunk = read(size);
        if (!Buffer.isBuffer(chunk)) return chunk;
        const visible = this.head.filter(chunk);
        if (this.head.isFlood) {
          socket.destroy(new InterimFloodError('endless 1xx answers'));
          return null;
        }
        if (visible !== null) return visible;
      }
    };
  }
}
