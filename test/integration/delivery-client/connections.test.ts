import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { answer as ok } from '../../support/raw-endpoint.js';
import { certificates } from '../../support/tls/certificates.js';
import { newClient, newEndpoint, post } from './harness.js';

describe('a connection', () => {
  it('is used again', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')));
    const client = newClient();
    for (let n = 0; n < 5; n += 1) {
      expect(await client.send(post(`http://receiver.test:${endpoint.port}/${n}`))).toMatchObject({
        statusCode: 200,
        resent: false,
      });
    }
    expect(endpoint.connections).toBe(1);
    expect(endpoint.requests).toHaveLength(5);
  });

  it('is not shared between hosts, though they have one address', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')));
    const client = newClient();
    await client.send(post(`http://one.test:${endpoint.port}/`));
    await client.send(post(`http://two.test:${endpoint.port}/`));
    expect(endpoint.connections).toBe(2);
  });

  it('that idles is closed, however long the endpoint wants to keep it', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK', '', ['Keep-Alive: timeout=600'])));
    await newClient({ idleTimeoutMs: 100 }).send(post(`http://receiver.test:${endpoint.port}/`));
    await expect.poll(() => endpoint.openSockets, { timeout: 3_000 }).toBe(0);
  });

  it('that the endpoint closes after its answer is not used again', async () => {
    const endpoint = await newEndpoint((socket) => socket.end(ok('200 OK', 'x', ['Connection: close'])));
    const client = newClient();
    for (let n = 0; n < 3; n += 1) {
      expect(await client.send(post(`http://receiver.test:${endpoint.port}/`))).toMatchObject({
        statusCode: 200,
        resent: false,
      });
    }
    expect(endpoint.connections).toBe(3);
    expect(endpoint.requests).toHaveLength(3);
  });

  it('makes way for others when too many idle', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')));
    const client = newClient({ maxIdleConnections: 2 });
    for (const host of ['a.test', 'b.test', 'c.test', 'd.test'])
      await client.send(post(`http://${host}:${endpoint.port}/`));
    await expect.poll(() => endpoint.openSockets).toBe(2);
    await client.send(post(`http://d.test:${endpoint.port}/`));
    expect(endpoint.connections).toBe(4);
  });
});

describe('a used connection that ends under a request', () => {
  it.each([
    ['FIN', (socket: Socket) => void socket.end()],
    ['RST', (socket: Socket) => void socket.resetAndDestroy()],
  ])('with %s before the first byte of the answer has it sent once more', async (_how, end) => {
    const endpoint = await newEndpoint((socket, count) =>
      count === 1 ? void socket.write(ok('200 OK')) : end(socket),
    );
    const client = newClient();
    const url = `http://receiver.test:${endpoint.port}/`;
    expect(await client.send(post(url))).toMatchObject({ statusCode: 200, resent: false });
    const second = await client.send(post(url, { body: Buffer.from('second') }));
    expect(second).toMatchObject({ statusCode: 200, errorCode: null, resent: true, dialled: true });
    expect(endpoint.requests.filter((request) => request.endsWith('second'))).toHaveLength(2);
    expect(endpoint.connections).toBe(2);
  });

  it('over TLS has it sent once more too', async () => {
    const endpoint = await newEndpoint(
      (socket, count) => (count === 1 ? void socket.write(ok('200 OK')) : void socket.end()),
      {
        tls: certificates.receiver,
      },
    );
    const client = newClient({ extraCa: [certificates.authority] });
    const url = `https://receiver.test:${endpoint.port}/`;
    expect(await client.send(post(url))).toMatchObject({ statusCode: 200 });
    expect(await client.send(post(url))).toMatchObject({ statusCode: 200, resent: true });
    expect(endpoint.requests).toHaveLength(3);
  });

  it('is not replaced a second time', async () => {
    let answered = 0;
    const endpoint = await newEndpoint((socket) =>
      answered++ === 0 ? void socket.write(ok('200 OK')) : void socket.end(),
    );
    const client = newClient();
    const url = `http://receiver.test:${endpoint.port}/`;
    await client.send(post(url));
    const second = await client.send(post(url));
    expect(second).toMatchObject({ statusCode: null, errorCode: 'connection_reset', resent: true, dialled: true });
    expect(endpoint.requests).toHaveLength(3);
  });

  it('after the first byte of the answer is an error, since the endpoint has answered', async () => {
    const endpoint = await newEndpoint((socket, count) =>
      count === 1 ? void socket.write(ok('200 OK')) : void socket.end('H'),
    );
    const client = newClient();
    const url = `http://receiver.test:${endpoint.port}/`;
    await client.send(post(url));
    expect(await client.send(post(url))).toMatchObject({
      statusCode: null,
      errorCode: 'connection_reset',
      resent: false,
    });
    expect(endpoint.requests).toHaveLength(2);
  });

  it('shares its deadline with the second sending', async () => {
    let requests = 0;
    const endpoint = await newEndpoint((socket, count) => {
      requests += 1;
      if (requests === 1) socket.write(ok('200 OK'));
      else if (count === 2) setTimeout(() => socket.end(), 250);
    });
    const client = newClient();
    const url = `http://receiver.test:${endpoint.port}/`;
    await client.send(post(url));
    const answer = await client.send(post(url, { timeoutMs: 400 }));
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'timeout_response', resent: true });
    expect(answer.durationMs).toBeLessThan(600);
  });

  it('while it idled costs nothing', async () => {
    const endpoint = await newEndpoint((socket) => {
      socket.write(ok('200 OK'));
      setImmediate(() => socket.end());
    });
    const client = newClient();
    const url = `http://receiver.test:${endpoint.port}/`;
    for (let n = 0; n < 30; n += 1) {
      expect(await client.send(post(url))).toMatchObject({ statusCode: 200, errorCode: null });
      if (n % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  });
});

describe('connections', () => {
  it('are bounded per endpoint, and waiting for one is not the endpoint’s time', async () => {
    const endpoint = await newEndpoint((socket) => void setTimeout(() => socket.write(ok('200 OK')), 100));
    const client = newClient({ slotWaitMs: 2_000 });
    const slot = { key: 'we_1', max: 2 };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        client.send(post(`http://receiver.test:${endpoint.port}/`, { timeoutMs: 350, slot })),
      ),
    );
    for (const answer of answers) {
      expect(answer).toMatchObject({ statusCode: 200, errorCode: null });
      expect(answer.durationMs).toBeLessThan(350);
    }
    expect(endpoint.connections).toBe(2);
  });

  it('of one endpoint that hangs are not taken from another one on the same origin', async () => {
    const origin = await newEndpoint((socket, _, request) => {
      if (request.startsWith('POST /quick')) socket.write(ok('200 OK'));
    });
    const client = newClient();
    const url = `http://receiver.test:${origin.port}`;
    const slow = { timeoutMs: 1_500, slot: { key: 'we_slow', max: 64 } };
    const stuck = Array.from({ length: 90 }, () => client.send(post(`${url}/slow`, slow)));
    await expect.poll(() => origin.requests.length).toBe(64);
    for (let n = 0; n < 5; n += 1) {
      const answer = await client.send(post(`${url}/quick`, { timeoutMs: 1_000, slot: { key: 'we_quick', max: 1 } }));
      expect(answer).toMatchObject({ statusCode: 200, errorCode: null });
    }
    const answers = await Promise.all(stuck);
    expect(answers.filter(({ errorCode }) => errorCode === 'timeout_response')).toHaveLength(64);
    expect(answers.filter(({ noSlot }) => noSlot)).toHaveLength(26);
  });

  it('are not all taken by one endpoint, whatever it is allowed', async () => {
    const endpoint = await newEndpoint((socket, _, request) => {
      if (request.startsWith('POST /quick')) socket.write(ok('200 OK'));
    });
    const client = newClient({ maxConnections: 4, slotWaitMs: 20 });
    const url = `http://receiver.test:${endpoint.port}`;
    const greedy = { timeoutMs: 300, slot: { key: 'we_greedy', max: 1_000 } };
    const stuck = Promise.all(Array.from({ length: 4 }, () => client.send(post(`${url}/slow`, greedy))));
    expect(await client.send(post(`${url}/quick`, { slot: { key: 'we_other', max: 1 } }))).toMatchObject({
      statusCode: 200,
    });
    expect((await stuck).filter(({ noSlot }) => noSlot)).toHaveLength(2);
  });

  it('to 2,000 endpoints at once are bounded, in use and idle, and all are served', { timeout: 60_000 }, async () => {
    let most = 0;
    const endpoint = await newEndpoint((socket) => {
      most = Math.max(most, endpoint.openSockets);
      socket.write(ok('200 OK'));
    });
    const client = newClient();
    const serve = async (name: string): Promise<void> => {
      for (;;) {
        const slot = { key: name, max: 64 };
        const answer = await client.send(post(`http://${name}.test:${endpoint.port}/`, { timeoutMs: 30_000, slot }));
        if (answer.noSlot) continue;
        return expect(answer).toMatchObject({ statusCode: 200, errorCode: null });
      }
    };
    await Promise.all(Array.from({ length: 2_000 }, (_, n) => serve(`e${n}`)));
    expect(endpoint.requests).toHaveLength(2_000);
    expect(most).toBeLessThanOrEqual(1_024 + 256);
    await expect.poll(() => endpoint.openSockets).toBeLessThanOrEqual(256);
    await expect.poll(() => endpoint.openSockets, { timeout: 10_000 }).toBe(0);
  });

  it('that idle are mostly left to others after a burst to one endpoint', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK')));
    const client = newClient({ maxIdleConnections: 8 });
    const url = `http://quiet.test:${endpoint.port}/`;
    await client.send(post(url));
    const burst = (): Promise<unknown> =>
      Promise.all(Array.from({ length: 20 }, () => client.send(post(`http://busy.test:${endpoint.port}/`))));
    await burst();
    const { connections } = endpoint;
    await client.send(post(url));
    expect(endpoint.connections).toBe(connections);
    await expect.poll(() => endpoint.openSockets).toBe(3);
  });

  it('that are all taken give a request back unsent', async () => {
    const endpoint = await newEndpoint(() => {});
    const client = newClient({ maxConnections: 1, slotWaitMs: 20 });
    const url = `http://receiver.test:${endpoint.port}/`;
    const first = client.send(post(url, { timeoutMs: 300 }));
    expect(await client.send(post(url))).toMatchObject({
      noSlot: true,
      dialled: false,
      statusCode: null,
      durationMs: 0,
    });
    await first;
    expect(endpoint.requests).toHaveLength(1);
  });

  it('of a hanging endpoint do not delay another one', async () => {
    const hanging = await newEndpoint(() => {});
    const quick = await newEndpoint((socket) => socket.write(ok('200 OK')));
    const client = newClient({ slotWaitMs: 2_000 });
    const slot = { key: 'we_slow', max: 4 };
    const stuck = Array.from({ length: 12 }, () =>
      client.send(post(`http://slow.test:${hanging.port}/`, { timeoutMs: 400, slot })),
    );
    expect(await client.send(post(`http://quick.test:${quick.port}/`, { timeoutMs: 300 }))).toMatchObject({
      statusCode: 200,
    });
    for (const answer of await Promise.all(stuck)) expect(answer.errorCode).toBe('timeout_response');
  });
});

describe('closing', () => {
  it('lets requests in flight end, refuses new ones and leaves no socket', async () => {
    const endpoint = await newEndpoint((socket) => void setTimeout(() => socket.write(ok('200 OK')), 100));
    const client = newClient();
    const url = `http://receiver.test:${endpoint.port}/`;
    const inFlight = client.send(post(url));
    await expect.poll(() => endpoint.requests.length).toBe(1);
    const closing = client.close();
    expect(await client.send(post(url))).toMatchObject({ noSlot: true, dialled: false });
    expect(await inFlight).toMatchObject({ statusCode: 200 });
    await closing;
    await expect.poll(() => endpoint.openSockets).toBe(0);
  });
});
