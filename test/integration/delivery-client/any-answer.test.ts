import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attemptErrorCodes } from '../../../src/domain/closed-lists.js';
import { newClient, newEndpoint, post } from './harness.js';

const pieces = fc.oneof(
  fc
    .constantFrom(
      'HTTP/1.1 200 OK\r\n',
      'HTTP/1.1 204 No Content\r\n',
      'HTTP/1.1 500 Oops\r\n',
      'HTTP/1.1 100 Continue\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\n\r\n',
      'HTTP/1.0 302 Found\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      'Content-Length: 5\r\n',
      'Content-Length: -1\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Connection: close\r\n',
      'Keep-Alive: timeout=1\r\n',
      'X: y\r\n',
      ' folded\r\n',
      '\r\n',
      '\n',
      'hello',
      '5\r\nhello\r\n',
      '0\r\n\r\n',
      'ffffffffffffffff\r\n',
    )
    .map((text) => Buffer.from(text, 'latin1')),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
);

describe('whatever bytes come back', () => {
  it('end in one answer from the closed lists, and the client goes on', async () => {
    let next: { readonly chunks: readonly Buffer[]; readonly end: 'end' | 'resetAndDestroy' } = {
      chunks: [],
      end: 'end',
    };
    const endpoint = await newEndpoint((socket) => {
      const { chunks, end } = next;
      const writeNext = (at: number) => {
        const chunk = chunks[at];
        if (chunk === undefined) socket[end]();
        else socket.write(chunk, () => setImmediate(writeNext, at + 1));
      };
      writeNext(0);
    });
    const client = newClient();
    await fc.assert(
      fc.asyncProperty(
        fc.array(pieces, { maxLength: 8 }),
        fc.constantFrom('end', 'resetAndDestroy'),
        async (chunks, end) => {
          next = { chunks, end };
          const answer = await client.send(post(`http://receiver.test:${endpoint.port}/`, { timeoutMs: 2_000 }));
          const { statusCode, errorCode } = answer;
          expect(statusCode === null || (statusCode >= 200 && statusCode <= 999)).toBe(true);
          expect(errorCode === null || attemptErrorCodes.includes(errorCode)).toBe(true);
          expect(statusCode !== null || errorCode !== null).toBe(true);
          expect(answer.durationMs).toBeLessThan(1_500);
        },
      ),
      { numRuns: 300 },
    );
    next = { chunks: [Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')], end: 'end' };
    expect(await client.send(post(`http://receiver.test:${endpoint.port}/`))).toMatchObject({ statusCode: 200 });
  });
});
