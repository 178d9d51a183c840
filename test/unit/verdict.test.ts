import { describe, expect, it } from 'vitest';
import { attemptErrorCodes } from '../../src/domain/closed-lists.js';
import { judgeAnswer } from '../../src/domain/verdict.js';

const judge = (statusCode: number | null, hadSucceededBefore = true) =>
  judgeAnswer({ statusCode, errorCode: null, hadSucceededBefore });
const failed = { kind: 'failed', gone: false, refused: false, honoursRetryAfter: false };

describe('an answer', () => {
  it.each([200, 201, 202, 204, 206, 226, 299])('%i is delivered', (status) => {
    expect(judge(status)).toEqual({ kind: 'delivered' });
  });

  it.each([
    100, 199, 300, 301, 302, 304, 307, 308, 400, 402, 404, 405, 408, 409, 422, 425, 451, 499, 500, 502, 504, 599, 600,
    999,
  ])('%i fails and is tried again', (status) => {
    expect(judge(status)).toEqual(failed);
  });

  it('is delivered when it is 2xx, whatever became of its body', () => {
    for (const errorCode of attemptErrorCodes) {
      expect(judgeAnswer({ statusCode: 200, errorCode, hadSucceededBefore: false })).toEqual({ kind: 'delivered' });
    }
  });

  it('that never came fails', () => {
    for (const errorCode of attemptErrorCodes) {
      expect(judgeAnswer({ statusCode: null, errorCode, hadSucceededBefore: true })).toEqual(failed);
    }
  });

  it('410 says that the endpoint is gone', () => {
    expect(judge(410)).toEqual({ ...failed, gone: true });
    expect(judge(410, false)).toEqual({ ...failed, gone: true });
  });

  it.each([401, 403])('%i refuses us only where an earlier delivery was accepted', (status) => {
    expect(judge(status, true)).toEqual({ ...failed, refused: true });
    expect(judge(status, false)).toEqual(failed);
  });

  it.each([429, 503])('%i may ask for a rest', (status) => {
    expect(judge(status)).toEqual({ ...failed, honoursRetryAfter: true });
  });
});
