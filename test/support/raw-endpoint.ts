import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

export interface RawEndpoint {
  readonly port: number;
  /** Connections so far. */
  readonly connections: number;
  readonly openSockets: number;
  /** Complete requests so far, as text. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

/** Called for each request that has completely arrived. `count`: which request of this connection it is, 1, 2, … */
export type Misbehave = (socket: Socket, count: number, request: string) => void;

interface Options {
  readonly host?: string;
  readonly port?: number;
  readonly tls?: TlsOptions;
  readonly onConnection?: (socket: Socket) => void;
}

/** A server on loopback that answers with whatever bytes a test wants. */
export async function startRawEndpoint(misbehave: Misbehave, options: Options = {}): Promise<RawEndpoint> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let connections = 0;
  const serve = (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    options.onConnection?.(socket);
    let received = '';
    let count = 0;
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      for (let end = endOfRequest(received); end > 0; end = endOfRequest(received)) {
        const request = received.slice(0, end);
        received = received.slice(end);
        count += 1;
        requests.push(request);
        misbehave(socket, count, request);
      }
    });
  };
  const server: Server = options.tls ? createTlsServer(options.tls, serve) : createServer(serve);
  server.on('tlsClientError', () => {});
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    get openSockets() {
      return sockets.size;
    },
    requests,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function endOfRequest(text: string): number {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return 0;
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
  return text.length >= head + 4 + length ? head + 4 + length : 0;
}

/** An answer whose head and body are complete. */
export function answer(status: string, body: string | Buffer = '', headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body as string);
  const lines = [`HTTP/1.1 ${status}`, `Content-Length: ${bytes.length}`, ...headers];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]);
}
