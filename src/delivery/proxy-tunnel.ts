import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, rootCertificates } from 'node:tls';
import type { ProxySettings } from '../config/proxy-url.js';
import { errorCodeOf, isLocalExhaustion, ProxyError } from './error-codes.js';

/** An answer to CONNECT has no body worth reading, and a proxy that says more than this says something else. */
const maxHeadBytes = 16 * 1024;

export interface TunnelOptions {
  readonly proxy: ProxySettings;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly extraCa: readonly string[];
  /** Is told of the socket to the proxy as soon as there is one. */
  readonly onDial: (socket: Socket) => void;
}

/**
 * Asks the proxy for a connection (RFC 9110, section 9.3.6), and calls back once: with a socket on which the endpoint listens, or
 * with what the proxy did instead. Whoever destroys the socket ends the wait.
 */
export function openTunnel(
  options: TunnelOptions,
  callback: (error: Error | null, socket: Socket | null) => void,
): void {
  const { proxy, extraCa, onDial } = options;
  const socket = proxy.tls ? dialTls(proxy, extraCa) : connectTcp({ host: proxy.host, port: proxy.port });
  onDial(socket);
  socket.setNoDelay(true);
  let head = Buffer.alloc(0);
  let settled = false;
  const settle = (error: Error | null) => {
    if (settled) return;
    settled = true;
    socket.off('readable', read).off('end', ended).off('close', ended);
    if (error === null) return callback(null, socket);
    socket.destroy();
    callback(error, null);
  };
  const read = () => {
    for (let chunk = take(socket); chunk !== null; chunk = take(socket)) {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      const startsWell = 'HTTP/1.'.startsWith(head.toString('latin1', 0, 'HTTP/1.'.length));
      if (!startsWell || (end < 0 && head.length > maxHeadBytes))
        return settle(new ProxyError('did not answer in HTTP'));
      if (end >= 0) return settle(judge(head, end + 4));
    }
  };
  const ended = () => settle(new ProxyError('closed the connection before it answered'));
  // The listener stays: a destroyed socket may still emit an error, which would end the process if nobody listened.
  socket.on('error', (error) =>
    settle(isLocalExhaustion(error) ? error : new ProxyError(`failed (${errorCodeOf(error)})`)),
  );
  socket.on('readable', read).once('end', ended).once('close', ended);
  socket.once(proxy.tls ? 'secureConnect' : 'connect', () => socket.write(connectRequest(options)));
}

function take(socket: Socket): Buffer | null {
  return socket.read() as Buffer | null;
}

function judge(head: Buffer, length: number): Error | null {
  const status = /^HTTP\/1\.[01] (\d{3})[ \r]/.exec(head.toString('latin1'))?.[1];
  if (status === undefined) return new ProxyError('did not answer in HTTP');
  if (!status.startsWith('2')) return new ProxyError(`answered ${status} to CONNECT`);
  // Endpoints speak when they are spoken to: these bytes can only be the proxy's.
  return head.length > length ? new ProxyError('sent more than an answer to CONNECT') : null;
}

function connectRequest({ proxy, host, port }: TunnelOptions): string {
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`];
  if (proxy.authorization !== null) lines.push(`Proxy-Authorization: ${proxy.authorization}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function dialTls({ host, port }: ProxySettings, extraCa: readonly string[]): Socket {
  return connectTls({
    host,
    port,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
    ...(extraCa.length > 0 ? { ca: [...rootCertificates, ...extraCa] } : {}),
  });
}
