import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { answer as ok } from '../../support/raw-endpoint.js';
import { newClient, newEndpoint, post, sendTo } from './harness.js';

const timeoutMs = 400;
/** A machine under load may be late, but not by much. */
const atDeadline = (durationMs: number) => {
  expect(durationMs).toBeGreaterThanOrEqual(timeoutMs - 5);
  expect(durationMs).toBeLessThan(timeoutMs + 1_000);
};

describe('an endpoint that is slow', () => {
  it('to resolve is timeout_connect', async () => {
    const answer = await newClient({ resolve: () => new Promise(() => {}) }).send(
      post('http://receiver.test/', { timeoutMs }),
    );
    expect(answer).toMatchObject({
      statusCode: null,
      errorCode: 'timeout_connect',
      dialled: false,
      remoteAddress: null,
    });
    atDeadline(answer.durationMs);
  });

  it('to shake hands is timeout_connect', async () => {
    const endpoint = await newEndpoint(() => {});
    const answer = await newClient().send(post(`https://receiver.test:${endpoint.port}/`, { timeoutMs }));
    expect(answer).toMatchObject({
      statusCode: null,
      errorCode: 'timeout_connect',
      dialled: true,
      remoteAddress: '127.0.0.1',
    });
    atDeadline(answer.durationMs);
  });

  it('to answer, or silent, is timeout_response', async () => {
    const { answer, endpoint } = await sendTo(() => {}, { timeoutMs });
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'timeout_response', dialled: true });
    atDeadline(answer.durationMs);
    await expect.poll(() => endpoint.openSockets).toBe(0);
  });

  it('with one byte of its head at a time is timeout_response', async () => {
    const { answer } = await sendTo((socket) => drip(socket, 'HTTP/1.1 200 OK\r\nX: '), { timeoutMs });
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'timeout_response' });
    atDeadline(answer.durationMs);
  });

  it('to read a large request is timeout_response', async () => {
    const endpoint = await newEndpoint(() => {}, { onConnection: (socket) => socket.pause() });
    const body = Buffer.alloc(32 * 1024 * 1024);
    const answer = await newClient().send(post(`http://receiver.test:${endpoint.port}/`, { body, timeoutMs }));
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'timeout_response' });
    atDeadline(answer.durationMs);
  });

  it('with interim answers that go on and on is timeout_response', async () => {
    const { answer } = await sendTo(
      (socket) => {
        const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 20);
        socket.on('close', () => clearInterval(timer));
      },
      { timeoutMs },
    );
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'timeout_response' });
    atDeadline(answer.durationMs);
  });

  it('with its body keeps its status, and the code is timeout_body', async () => {
    const { answer } = await sendTo(
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
        drip(socket, 'abcdefgh');
      },
      { timeoutMs },
    );
    expect(answer).toMatchObject({ statusCode: 200, errorCode: 'timeout_body', responseTruncated: true });
    expect(answer.responseBody.toString()).toMatch(/^abc/);
    atDeadline(answer.durationMs);
  });

  it('with the body of a failure is judged by the status', async () => {
    const { answer } = await sendTo((socket) => socket.write('HTTP/1.1 500 Oops\r\nContent-Length: 10\r\n\r\n'), {
      timeoutMs,
    });
    expect(answer).toMatchObject({ statusCode: 500, errorCode: 'http_status', responseTruncated: true });
  });
});

describe('an endpoint that sends without end', () => {
  it('interim answers is cut off after a megabyte', async () => {
    const { answer } = await sendTo((socket) =>
      flood(socket, Buffer.from('HTTP/1.1 102 Processing\r\n\r\n'.repeat(2_000))),
    );
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'protocol_error' });
    const continues = await sendTo((socket) =>
      flood(socket, Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'.repeat(2_000))),
    );
    expect(continues.answer).toMatchObject({ statusCode: null, errorCode: 'protocol_error' });
  });

  it('body bytes is cut off after 64 KiB, without an error, in flat memory', async () => {
    let written = 0;
    const endpoint = await newEndpoint((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      flood(
        socket,
        Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 'x'), Buffer.from('\r\n')]),
        (bytes) => {
          written += bytes;
        },
      );
    });
    const client = newClient();
    const before = process.memoryUsage();
    for (let n = 0; n < 40; n += 1) {
      const answer = await client.send(post(`http://receiver.test:${endpoint.port}/`));
      expect(answer).toMatchObject({ statusCode: 200, errorCode: null, responseTruncated: true });
      expect(answer.responseBody).toHaveLength(16 * 1024);
    }
    await expect.poll(() => endpoint.openSockets).toBe(0);
    expect(written).toBeGreaterThan(40 * 64 * 1024);
    expect(process.memoryUsage().rss - before.rss).toBeLessThan(200 * 1024 * 1024);
  });

  it('one header is protocol_error', async () => {
    const { answer } = await sendTo((socket) => {
      socket.write('HTTP/1.1 ');
      flood(socket, Buffer.from('2'.repeat(1_000)));
    });
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'protocol_error' });
  });
});

describe('an endpoint that breaks rules', () => {
  it.each([
    ['garbage', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['an empty line and garbage', '\r\n\r\nhello'],
    ['half a status line', 'HTTP/1.1\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a status that is no number', 'HTTP/1.1 abc OK\r\n\r\n'],
    ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'],
  ])('with %s for an answer is protocol_error', async (_what, text) => {
    const { answer } = await sendTo((socket) => socket.write(text));
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'protocol_error', dialled: true });
  });

  it.each([
    ['a NUL in a header', 'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n'],
    ['a header without a colon', 'HTTP/1.1 200 OK\r\nnonsense\r\n\r\n'],
    ['headers larger than 64 KiB', `HTTP/1.1 200 OK\r\n${`X: ${'v'.repeat(1_000)}\r\n`.repeat(70)}\r\n`],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['a bad chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n'],
  ])('in %s is protocol_error, but its 200 was read and counts', async (_what, text) => {
    const { answer, endpoint } = await sendTo((socket) => socket.write(text));
    expect(answer).toMatchObject({ statusCode: 200, errorCode: 'protocol_error', responseTruncated: true });
    expect(endpoint.requests).toHaveLength(1);
  });

  it('in the head of a failure is judged by the status', async () => {
    const { answer } = await sendTo((socket) => socket.write('HTTP/1.1 410 Gone\r\nnonsense\r\n\r\n'));
    expect(answer).toMatchObject({ statusCode: 410, errorCode: 'http_status' });
  });

  it('by sending more than its length loses the connection only', async () => {
    const client = newClient();
    const endpoint = await newEndpoint((socket) =>
      socket.write(`${ok('200 OK', 'ab').toString()}HTTP/1.1 500 Sneaky\r\n\r\n`),
    );
    for (let n = 0; n < 3; n += 1) {
      const answer = await client.send(post(`http://receiver.test:${endpoint.port}/`));
      expect(answer).toMatchObject({ statusCode: 200, errorCode: null, resent: false });
    }
    expect(endpoint.requests).toHaveLength(3);
  });
});

describe('an endpoint that ends the connection', () => {
  it('before it listens is connection_refused', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    const answer = await newClient().send(post(`http://receiver.test:${port}/`));
    expect(answer).toMatchObject({
      statusCode: null,
      errorCode: 'connection_refused',
      remoteAddress: '127.0.0.1',
      dialled: true,
    });
  });

  it.each([
    ['with FIN', (socket: Socket) => socket.end()],
    ['with RST', (socket: Socket) => socket.resetAndDestroy()],
    ['with FIN amid the head', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nX: ')],
  ])('%s is connection_reset, and a fresh connection is not tried again', async (_how, end) => {
    const { answer, endpoint } = await sendTo((socket) => end(socket));
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'connection_reset', resent: false, dialled: true });
    expect(endpoint.requests).toHaveLength(1);
  });

  it('amid the body keeps the status', async () => {
    for (const end of ['end', 'resetAndDestroy'] as const) {
      const { answer } = await sendTo((socket) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc', () => setImmediate(() => socket[end]()));
      });
      expect(answer).toMatchObject({ statusCode: 200, responseTruncated: true });
      expect(answer.errorCode).toMatch(/^(connection_reset|protocol_error)$/);
    }
  });
});

describe('a name', () => {
  it.each(['ENOTFOUND', 'EAI_AGAIN', 'ESERVFAIL'])('that fails with %s is dns_failed', async (code) => {
    const resolve = () => Promise.reject(Object.assign(new Error('s3cret'), { code }));
    const answer = await newClient({ resolve }).send(post('http://receiver.test/'));
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'dns_failed', dialled: false });
    expect(answer.errorMessage).toContain(code);
    expect(answer.errorMessage).not.toContain('s3cret');
  });

  it('without any address is dns_failed', async () => {
    const answer = await newClient({ resolve: async () => [] }).send(post('http://receiver.test/'));
    expect(answer).toMatchObject({ errorCode: 'dns_failed' });
  });
});

function drip(socket: Socket, text: string): void {
  let at = 0;
  const timer = setInterval(() => socket.write(text.charAt(at++) || 'x'), 40);
  socket.on('close', () => clearInterval(timer));
}

function flood(socket: Socket, bytes: Buffer, onWrite: (length: number) => void = () => {}): void {
  const pump = () => {
    while (!socket.destroyed && socket.write(bytes)) onWrite(bytes.length);
  };
  socket.on('drain', pump);
  pump();
}
