import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AnswerHead } from '../../src/delivery/answer-head.js';

function pass(...chunks: (string | Buffer)[]): { head: AnswerHead; seen: string } {
  const head = new AnswerHead();
  head.reset();
  const seen = chunks.map((chunk) => head.filter(Buffer.from(chunk as string)) ?? Buffer.alloc(0));
  return { head, seen: Buffer.concat(seen).toString('latin1') };
}

describe('the head of an answer', () => {
  it('shows its status before the parser has seen the rest', () => {
    expect(pass('HTTP/1.1 200 OK\r\n').head.statusCode).toBe(200);
    expect(pass('HTTP/1.0 503\r\n').head.statusCode).toBe(503);
    expect(pass('HTTP/1.1 2', '0', '4 No Content\r\n').head.statusCode).toBe(204);
    for (const text of [
      '',
      'HTTP/1.1 20',
      'HTTP/1.1 2000 ',
      'HTTP/2.0 200 ',
      'ICY 200 OK\r\n',
      'HTTP/1.1 103 Early Hints\r\n',
    ]) {
      expect(pass(text).head.statusCode).toBeNull();
    }
  });

  it('says whether any byte came', () => {
    expect(pass().head.sawBytes).toBe(false);
    expect(pass('H').head.sawBytes).toBe(true);
  });

  it('loses 100 Continue answers, however they are cut', () => {
    const text =
      'HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: text.length - 1 })), (cuts) => {
        const points = [0, ...new Set(cuts.sort((a, b) => a - b)), text.length];
        const { head, seen } = pass(...points.slice(1).map((end, index) => text.slice(points[index], end)));
        expect(seen).toBe('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        expect(head.statusCode).toBe(200);
      }),
    );
  });

  it('leaves everything else as it came', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 30 }).map((bytes) => Buffer.from(bytes))),
        (chunks) => {
          const first = Buffer.from('HTTP/1.1 200 OK\r\n');
          expect(pass(first, ...chunks).seen).toBe(Buffer.concat([first, ...chunks]).toString('latin1'));
          expect(pass('garbage', ...chunks).seen).toBe(
            Buffer.concat([Buffer.from('garbage'), ...chunks]).toString('latin1'),
          );
        },
      ),
    );
  });

  it('hands garbage on at once', () => {
    expect(pass('HTTQ').seen).toBe('HTTQ');
    expect(pass('x').seen).toBe('x');
  });

  it('is a flood when interim answers exceed a megabyte, not when the body does', () => {
    const megabyte = Buffer.alloc(1024 * 1024 + 1, 'x');
    expect(pass('HTTP/1.1 102 Processing\r\n\r\n', megabyte).head.isFlood).toBe(true);
    const { head } = pass('HTTP/1.1 200 OK\r\n\r\n');
    head.final();
    head.filter(megabyte);
    expect(head.isFlood).toBe(false);
  });
});
