import { connect, createServer } from 'node:net';

/** A port that something is about to listen on. */
export interface PortWish {
  readonly port: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** What wants it, as a person calls it: `Postgres`. */
  readonly wantedBy: string;
  /** The environment variable that moves it. */
  readonly variable: string;
}

/** Names all ports that can't be had, so that one look repairs it. */
export class PortsInUseError extends Error {
  override readonly name = 'PortsInUseError';
  constructor(readonly problems: readonly string[]) {
    super(
      problems.length === 1 ? problems[0] : `Some ports can't be used:\n${problems.map((p) => `  - ${p}`).join('\n')}`,
    );
  }
}

/**
 * Checks all ports before anything is started.
 * @throws {PortsInUseError} with a line for each port that is taken, wanted twice or forbidden.
 */
export async function checkPorts(wishes: readonly PortWish[]): Promise<void> {
  const problems = await findPortProblems(wishes);
  if (problems.length > 0) throw new PortsInUseError(problems);
}

/** One line for each port that can't be had, with what wanted it and the variable that moves it. */
export async function findPortProblems(wishes: readonly PortWish[]): Promise<readonly string[]> {
  const lines = await Promise.all(
    wishes.map(async (wish, index) => {
      const { port, wantedBy, variable } = wish;
      const rival = wishes.slice(0, index).find((other) => other.port === port);
      if (rival)
        return `Port ${port} is wanted by both ${rival.wantedBy} and ${wantedBy}: set ${variable} to another one.`;
      const reason = await whyNotFree(wish);
      return reason === null ? null : `Port ${port}, wanted by ${wantedBy}, ${reason}: set ${variable} to another one.`;
    }),
  );
  return lines.filter((line) => line !== null);
}

async function whyNotFree({ port, host = '127.0.0.1' }: PortWish): Promise<string | null> {
  // Some systems let us listen beside a process that has the port on all addresses: a connection finds it.
  if (await answers(port)) return 'is in use by another program';
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve('is in use by another program');
      else if (error.code === 'EACCES') resolve('may not be opened by this user');
      else resolve(`can't be opened on ${host} (${error.code ?? error.message})`);
    });
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 1_000 });
    const settle = (answer: boolean) => (): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', settle(true)).once('error', settle(false)).once('timeout', settle(false));
  });
}

/** Ports that are free now, all different; another program may still be faster. */
export async function findFreePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject).listen({ port: 0, host: '127.0.0.1' }, resolve);
      });
      return server;
    }),
  );
  return Promise.all(
    servers.map(async (server) => {
      const address = server.address();
      await new Promise((resolve) => server.close(resolve));
      if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
      return address.port;
    }),
  );
}
