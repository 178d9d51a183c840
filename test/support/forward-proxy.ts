import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

/** What a proxy does with a CONNECT: opens the tunnel, or fails in one of the ways in which proxies fail. */
export type ProxyManner = 'tunnel' | 'hang' | 'ask_for_password' | 'bad_gateway' | 'close' | 'close_midway' | 'garbage';

export interface ForwardProxy {
  readonly port: number;
  manner: ProxyManner;
  /** Where tunnels go, whatever is asked for; null: to where it is asked. */
  target: { readonly host: string; readonly port: number } | null;
  /** Heads of the requests so far. */
  readonly requests: readonly string[];
  /** What was asked for, such as `127.0.0.1:443`. */
  readonly targets: readonly string[];
  readonly openSockets: number;
  close(): Promise<void>;
}

const answers: Partial<Record<ProxyManner, string>> = {
  ask_for_password:
    'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n',
  bad_gateway: 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n',
  close_midway: 'HTTP/1.1 200 Connection Est',
  garbage: '\u0000\u0001SSH-2.0-OpenSSH_9.6\r\n\r\n',
};

/** An HTTP proxy on loopback that knows CONNECT, and can be told to misbehave. */
export async function startForwardProxy(options: { tls?: TlsOptions; port?: number } = {}): Promise<ForwardProxy> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  const targets: string[] = [];
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  };
  const serve = (near: Socket) => {
    keep(near);
    let head = '';
    const read = (chunk: Buffer) => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      near.off('data', read);
      requests.push(head);
      const [, host = '', port = ''] = /^CONNECT \[?([^\s\]]+)\]?:(\d+) HTTP/.exec(head) ?? [];
      targets.push(`${host}:${port}`);
      const { manner } = proxy;
      if (manner === 'hang') return;
      if (manner !== 'tunnel') return void near.end(answers[manner] ?? '');
      const far = connect(proxy.target ?? { host, port: Number(port) }, () => {
        near.write('HTTP/1.1 200 Connection established\r\n\r\n');
        near.pipe(far).pipe(near);
      });
      keep(far);
      far.on('error', () => near.destroy());
      far.on('close', () => near.destroy());
      near.on('close', () => far.destroy());
    };
    near.on('data', read);
  };
  const server: Server = options.tls ? createTlsServer(options.tls, serve) : createServer(serve);
  server.on('tlsClientError', () => {});
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const proxy: ForwardProxy = {
    port: (server.address() as AddressInfo).port,
    manner: 'tunnel',
    target: null,
    requests,
    targets,
    get openSockets() {
      return sockets.size;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return proxy;
}
