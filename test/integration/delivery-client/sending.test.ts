import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { answer as ok } from '../../support/raw-endpoint.js';
import { newClient, newEndpoint, post, sendTo } from './harness.js';

describe('a request', () => {
  it('goes out with exactly the given path, headers and bytes', async () => {
    const endpoint = await newEndpoint((socket) => socket.write(ok('200 OK', 'thanks', ['X-One: 1', 'x-one: 2'])));
    const body = Buffer.from([0, 255, 13, 10, 123]);
    const answer = await newClient().send(
      post(`http://receiver.test:${endpoint.port}/a/%2f;b?x=%zz&y=a%20b`, {
        body,
        headers: { 'X-Mixed-Case': 'é\tz', b: '' },
      }),
    );
    expect(endpoint.requests).toEqual([
      [
        'POST /a/%2f;b?x=%zz&y=a%20b HTTP/1.1',
        `host: receiver.test:${endpoint.port}`,
        'connection: keep-alive',
        'X-Mixed-Case: é\tz',
        'b: ',
        'content-length: 5',
        '',
        body.toString('latin1'),
      ].join('\r\n'),
    ]);
    expect(answer).toMatchObject({
      statusCode: 200,
      errorCode: null,
      errorMessage: null,
      responseHeaders: [
        ['Content-Length', '6'],
        ['X-One', '1'],
        ['x-one', '2'],
      ],
      responseTruncated: false,
      remoteAddress: '127.0.0.1',
      resent: false,
      dialled: true,
    });
    expect(answer.responseBody.toString()).toBe('thanks');
    expect(answer.startedAt).toBeInstanceOf(Date);
    expect(Number.isInteger(answer.durationMs)).toBe(true);
  });

  it('of the handshake is OPTIONS without a body', async () => {
    const { answer, endpoint } = await sendTo(
      (socket) => socket.write(ok('204 No Content', '', ['WebHook-Allowed-Origin: *'])),
      {
        method: 'OPTIONS',
        body: null,
        headers: { 'WebHook-Request-Origin': 'posthorn.example' },
      },
    );
    expect(endpoint.requests[0]).toMatch(/^OPTIONS \/hook HTTP\/1\.1\r\n/);
    expect(endpoint.requests[0]).not.toMatch(/content-length/i);
    expect(answer).toMatchObject({
      statusCode: 204,
      responseHeaders: expect.arrayContaining([['WebHook-Allowed-Origin', '*']]),
    });
  });

  it.each([
    ['a name with a line break', { 'x\r\ny': '1' }],
    ['an empty name', { '': '1' }],
    ['a name that is no token', { ü: '1' }],
    ['a value with a line break', { x: 's3cret\r\nHost: inner' }],
    ['a value with NUL', { x: 's3cret\0' }],
    ['a value beyond latin1', { x: 's3cret→' }],
    ['a host', { Host: 's3cret.example' }],
    ['a length', { 'Content-Length': '1' }],
    ['a transfer coding', { 'transfer-encoding': 'chunked' }],
    ['two spellings of one name', { 'X-A': 's3cret', 'x-a': '2' }],
    ['a value that is no text', { x: 5 as unknown as string }],
  ])('with %s among its headers is not sent, and its values are not shown', async (_what, headers) => {
    const { answer, endpoint } = await sendTo((socket) => socket.write(ok('200 OK')), {
      headers,
    });
    expect(answer).toMatchObject({ statusCode: null, errorCode: 'config_invalid', dialled: false, durationMs: 0 });
    expect(answer.errorMessage).not.toContain('s3cret');
    expect(endpoint.connections).toBe(0);
  });

  it.each([
    '',
    'not a url',
    'ftp://receiver.test/',
    'https://user:s3cret@receiver.test/',
    `https://receiver.test/${'x'.repeat(3_000)}`,
  ])('to %.40s is not sent', async (url) => {
    const answer = await newClient().send(post(url));
    expect(answer).toMatchObject({ errorCode: 'config_invalid', dialled: false, remoteAddress: null });
    expect(answer.errorMessage).not.toContain('s3cret');
  });

  it.each([0, -1, Number.NaN, Infinity])('with a timeout of %d ms is not sent', async (timeoutMs) => {
    expect(await newClient().send(post('https://receiver.test/', { timeoutMs }))).toMatchObject({
      errorCode: 'config_invalid',
    });
  });

  it('never rejects, even when it is nonsense', async () => {
    const client = newClient();
    for (const nonsense of [undefined, null, {}, { url: 5 }, { ...post('http://receiver.test/'), headers: null }]) {
      expect(await client.send(nonsense as never)).toMatchObject({ statusCode: null, dialled: false });
    }
  });
});

describe('an answer', () => {
  it.each([200, 201, 202, 204, 299])('of %i has no error', async (status) => {
    const { answer } = await sendTo((socket) => socket.write(ok(`${status} X`)));
    expect(answer).toMatchObject({ statusCode: status, errorCode: null, errorMessage: null });
  });

  it.each([400, 401, 404, 408, 410, 425, 429, 500, 503, 599])('of %i is http_status', async (status) => {
    const { answer } = await sendTo((socket) => socket.write(ok(`${status} X`, 'why')));
    expect(answer).toMatchObject({ statusCode: status, errorCode: 'http_status' });
    expect(answer.responseBody.toString()).toBe('why');
  });

  it.each([300, 301, 302, 303, 304, 307, 308])('of %i is redirect, and is not followed', async (status) => {
    const canary = await newEndpoint((socket) => socket.write(ok('200 OK')));
    const { answer, endpoint } = await sendTo((socket) =>
      socket.write(ok(`${status} X`, '', [`Location: http://127.0.0.1:${canary.port}/`])),
    );
    expect(answer).toMatchObject({ statusCode: status, errorCode: 'redirect' });
    expect(endpoint.requests).toHaveLength(1);
    expect(canary.connections).toBe(0);
  });

  it('is stored byte for byte, NUL and invalid UTF-8 included', async () => {
    const bytes = Buffer.from([0, 0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0, 0x0a]);
    const { answer } = await sendTo((socket) => socket.write(ok('200 OK', bytes)));
    expect(answer.responseBody).toEqual(bytes);
  });

  it('that is compressed, or says so, is stored as it came', async () => {
    const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024));
    const { answer } = await sendTo((socket) => socket.write(ok('200 OK', bomb, ['Content-Encoding: gzip'])));
    expect(answer).toMatchObject({ statusCode: 200, errorCode: null });
    expect(answer.responseBody).toEqual(bomb.subarray(0, 16 * 1024));

    const { answer: liar } = await sendTo((socket) =>
      socket.write(ok('200 OK', 'plain', ['Content-Encoding: gzip, br'])),
    );
    expect(liar).toMatchObject({ statusCode: 200, errorCode: null });
    expect(liar.responseBody.toString()).toBe('plain');
  });

  it.each([
    [16 * 1024, 16 * 1024, false],
    [16 * 1024 + 1, 16 * 1024, true],
    [64 * 1024, 16 * 1024, true],
  ])('with %i bytes keeps %i of them', async (sent, kept, truncated) => {
    const { answer, endpoint } = await sendTo((socket) => socket.write(ok('200 OK', Buffer.alloc(sent, 'x'))));
    expect(answer).toMatchObject({ statusCode: 200, errorCode: null, responseTruncated: truncated });
    expect(answer.responseBody).toHaveLength(kept);
    expect(endpoint.openSockets).toBe(1);
  });

  it('with hundreds of headers keeps a hundred, and Retry-After wherever it stands', async () => {
    const many = Array.from({ length: 900 }, (_, n) => `X-${n}: ${n}`);
    const { answer } = await sendTo((socket) => socket.write(ok('503 Busy', 'no', [...many, 'Retry-After: 120'])));
    expect(answer).toMatchObject({ statusCode: 503, responseTruncated: true });
    expect(answer.responseHeaders).toHaveLength(101);
    expect(answer.responseHeaders.at(-1)).toEqual(['Retry-After', '120']);
  });

  it('with large headers keeps 16 KiB of them', async () => {
    const large = Array.from({ length: 12 }, (_, n) => `X-${n}: ${'v'.repeat(5_000)}`);
    const { answer } = await sendTo((socket) => socket.write(ok('200 OK', 'ok', large)));
    expect(answer).toMatchObject({ statusCode: 200, errorCode: null, responseTruncated: true });
    expect(answer.responseHeaders.join('').length).toBeLessThan(17 * 1024);
    expect(answer.responseBody.toString()).toBe('ok');
  });

  it('has headers in UTF-8 or any bytes', async () => {
    const { answer } = await sendTo((socket) => {
      const bytes = Buffer.concat([Buffer.from('X-Utf: é\r\nX-Raw: ', 'utf8'), Buffer.from([0xe9, 0xff])]);
      socket.write(
        Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n'), bytes, Buffer.from('\r\n\r\n')]),
      );
    });
    expect(answer.responseHeaders).toEqual([
      ['Content-Length', '0'],
      ['X-Utf', 'é'],
      ['X-Raw', 'éÿ'],
    ]);
  });

  it('may be preceded by interim ones, an unasked-for 100 Continue among them', async () => {
    const { answer, endpoint } = await sendTo((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      setImmediate(() => socket.write(`HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${ok('200 OK', 'done').toString()}`));
    });
    expect(answer).toMatchObject({ statusCode: 200, errorCode: null });
    expect(answer.responseBody.toString()).toBe('done');
    expect(endpoint.requests).toHaveLength(1);
  });

  it('may come in chunks, or end with the connection', async () => {
    const chunked = await sendTo((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'),
    );
    expect(chunked.answer.responseBody.toString()).toBe('abcde');
    const closing = await sendTo((socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nto the end'));
    expect(closing.answer).toMatchObject({ statusCode: 200, errorCode: null, responseTruncated: false });
    expect(closing.answer.responseBody.toString()).toBe('to the end');
  });
});
