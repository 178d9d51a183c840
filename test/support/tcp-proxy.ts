import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A way to a server that can be interrupted without touching either side. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private held = false;
  private refusing = false;

  private constructor(
    private readonly server: Server,
    readonly address: string,
  ) {}

  /** @param target `host:port` */
  static async start(target: string): Promise<TcpProxy> {
    const [host, port] = target.split(':');
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const proxy = new TcpProxy(server, `127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.on('connection', (near) => {
      if (proxy.refusing) return void near.destroy();
      const far = connect({ host: host!, port: Number(port) });
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        proxy.sockets.add(one);
        one.on('data', (chunk) => void other.write(chunk));
        one.on('error', () => other.destroy());
        one.on('close', () => {
          proxy.sockets.delete(one);
          other.destroy();
        });
        if (proxy.held) one.pause();
      }
    });
    return proxy;
  }

  /** Nothing passes any more, and nobody is told. */
  hold(): void {
    this.held = true;
    for (const socket of this.sockets) socket.pause();
  }

  /** Every connection breaks, and new ones break at once. */
  cut(): void {
    this.refusing = true;
    for (const socket of this.sockets) socket.destroy();
  }

  /** New connections pass again. */
  restore(): void {
    this.refusing = false;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
