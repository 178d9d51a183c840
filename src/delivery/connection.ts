import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, rootCertificates } from 'node:tls';
import { Client, type buildConnector } from 'undici';
import { judgeAddress, literalAddress, type AddressPolicy } from './address-policy.js';
import { AnswerHead } from './answer-head.js';
import { BlockedAddressError, InterimFloodError, SpentConnectionError, type Phase } from './error-codes.js';

export interface ConnectionOptions {
  readonly policy: AddressPolicy;
  readonly idleTimeoutMs: number;
  /** PEM certificates to trust beside the public ones. */
  readonly extraCa: readonly string[];
}

export const maxHeaderSize = 64 * 1024;

/** Where a request goes: the URL's origin, and the one address that was judged for it. */
export interface Target {
  readonly url: URL;
  readonly address: string;
}

/** Pools are kept by this: a name that moves to another address never meets a socket to the old one. */
export function poolKey({ url, address }: Target): string {
  return `${url.origin} ${address}`;
}

/**
 * Refuses or dials `target.address`. It is undici's `connect` function, not a `lookup`, because Node never calls lookups for
 * numeric hosts. It dials once.
 */
export function pinnedConnector(
  target: Target,
  options: Pick<ConnectionOptions, 'policy' | 'extraCa'>,
  onDial: (socket: Socket) => void = () => {},
): buildConnector.connector {
  let used = false;
  return (_options, callback) => {
    const fail = (error: Error) => queueMicrotask(() => callback(error, null));
    if (used) return fail(new SpentConnectionError('this connection has ended'));
    used = true;
    const judgement = judgeAddress(target.address, options.policy);
    if (!judgement.ok) return fail(new BlockedAddressError(judgement.kind));
    if (target.url.protocol === 'http:' && !mayUseHttp(options.policy, judgement.loopback)) {
      return fail(new BlockedAddressError(httpNotLocal));
    }
    let socket: Socket;
    try {
      socket = dial(target.url, judgement.address, options.extraCa);
    } catch (error) {
      return fail(error instanceof Error ? error : new Error('cannot dial'));
    }
    onDial(socket);
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
    socket.once(target.url.protocol === 'https:' ? 'secureConnect' : 'connect', () => answer(null));
  };
}

/** What an address is that `mayUseHttp` refuses. */
export const httpNotLocal = 'not on this machine (http is allowed to this machine only)';

export function mayUseHttp({ allowHttp }: AddressPolicy, loopback: boolean): boolean {
  return allowHttp === 'on' || (allowHttp === 'loopback' && loopback);
}

function dial(url: URL, address: string, extraCa: readonly string[]): Socket {
  if (url.protocol === 'http:') return connectTcp({ host: address, port: Number(url.port || 80) });
  return connectTls({
    host: address,
    port: Number(url.port || 443),
    // The certificate is checked against the name in the URL, whatever address is dialled; SNI carries no numbers or final dot.
    ...(literalAddress(url) === null ? { servername: url.hostname.replace(/\.$/, '') } : {}),
    ALPNProtocols: ['http/1.1'],
    // Said aloud, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
    rejectUnauthorized: true,
    ...(extraCa.length > 0 ? { ca: [...rootCertificates, ...extraCa] } : {}),
  });
}

/** One undici client with one socket, to one address, dialled once. */
export class Connection {
  readonly key: string;
  readonly head = new AnswerHead();
  readonly client: Client;
  #socket: Socket | null = null;
  #tcpConnected = false;
  #ended = false;

  constructor(target: Target, options: ConnectionOptions, onEnd: (connection: Connection) => void) {
    this.key = poolKey(target);
    this.client = new Client(target.url.origin, {
      connect: pinnedConnector(target, options, (socket) => this.#adopt(socket)),
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

  get tcpConnected(): boolean {
    return this.#tcpConnected;
  }

  get connectPhase(): Phase {
    return this.#tcpConnected ? 'tls' : 'connect';
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

  #adopt(socket: Socket): void {
    this.#socket = socket;
    socket.once('connect', () => {
      this.#tcpConnected = true;
    });
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
