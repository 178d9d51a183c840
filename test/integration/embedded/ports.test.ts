import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/config.js';
import { embeddedPortWishes } from '../../../src/embedded/port-wishes.js';
import { checkPorts, findFreePorts, PortsInUseError } from '../../../src/embedded/ports.js';

const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

async function listen(host: string): Promise<number> {
  const server = createServer((socket) => socket.destroy());
  servers.push(server);
  await new Promise<void>((resolve) => server.listen({ port: 0, host }, resolve));
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}

const wish = (port: number, wantedBy: string, variable: string) => ({ port, wantedBy, variable });

describe('checkPorts', () => {
  it('is content with free ports', async () => {
    const [one = 0, two = 0] = await findFreePorts(2);
    await checkPorts([wish(one, 'the API', 'POSTHORN_HTTP_PORT'), wish(two, 'Postgres', 'POSTHORN_POSTGRES_PORT')]);
  });

  it.each(['127.0.0.1', '0.0.0.0'])('names a port in use on %s, what wanted it and what moves it', async (host) => {
    const port = await listen(host);
    const error = await checkPorts([wish(port, 'Postgres', 'POSTHORN_POSTGRES_PORT')]).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(PortsInUseError);
    expect((error as Error).message).toBe(
      `Port ${port}, wanted by Postgres, is in use by another program: set POSTHORN_POSTGRES_PORT to another one.`,
    );
  });

  it('names all conflicts at once', async () => {
    const [one, two] = [await listen('127.0.0.1'), await listen('127.0.0.1')];
    const [free = 0] = await findFreePorts(1);
    const error = await checkPorts([
      wish(one, 'the API', 'POSTHORN_HTTP_PORT'),
      wish(free, 'Postgres', 'POSTHORN_POSTGRES_PORT'),
      wish(two, 'Temporal', 'POSTHORN_TEMPORAL_PORT'),
    ]).catch((e: unknown) => e);
    expect((error as PortsInUseError).problems).toHaveLength(2);
    for (const word of [`Port ${one}`, 'POSTHORN_HTTP_PORT', `Port ${two}`, 'POSTHORN_TEMPORAL_PORT']) {
      expect((error as Error).message).toContain(word);
    }
  });

  it('names a port that two of ours want', async () => {
    const [port = 0] = await findFreePorts(1);
    await expect(
      checkPorts([wish(port, 'the API', 'POSTHORN_HTTP_PORT'), wish(port, 'Postgres', 'POSTHORN_POSTGRES_PORT')]),
    ).rejects.toThrow(
      `Port ${port} is wanted by both the API and Postgres: set POSTHORN_POSTGRES_PORT to another one.`,
    );
  });
});

const variables = (env: NodeJS.ProcessEnv): string[] =>
  embeddedPortWishes(loadConfig('standalone', env)).map(({ variable }) => variable);

describe('the ports of npm start', () => {
  it('are those of the engines that it brings itself', () => {
    expect(variables({})).toEqual([
      'POSTHORN_HTTP_PORT',
      'POSTHORN_POSTGRES_PORT',
      'POSTHORN_TEMPORAL_PORT',
      'POSTHORN_TEMPORAL_UI_PORT',
      'POSTHORN_SAMPLE_RECEIVER_PORT',
    ]);
    expect(
      variables({
        POSTHORN_DATABASE_URL: 'postgres://localhost/posthorn',
        TEMPORAL_ADDRESS: 'localhost:7233',
        POSTHORN_SAMPLE_RECEIVER: 'off',
      }),
    ).toEqual(['POSTHORN_HTTP_PORT']);
  });

  it('differ from each other by default', async () => {
    const ports = embeddedPortWishes(loadConfig('standalone', {})).map(({ port }) => port);
    expect(new Set(ports).size).toBe(ports.length);
  });
});
