import type { AttemptErrorCode } from './closed-lists.js';

export interface Answer {
  /** Null when no answer came. */
  readonly statusCode: number | null;
  readonly errorCode: AttemptErrorCode | null;
  /** Whether this endpoint ever accepted a delivery. */
  readonly hadSucceededBefore: boolean;
}

export type Verdict =
  | { readonly kind: 'delivered' }
  | {
      readonly kind: 'failed';
      /** The endpoint says that it is no more: it is to be disabled. */
      readonly gone: boolean;
      /** It used to accept us and now refuses our credentials: rest longer, tell its owner once. */
      readonly refused: boolean;
      /** Its Retry-After counts, and the whole endpoint rests until then. */
      readonly honoursRetryAfter: boolean;
    };

/** What an answer means. The status alone decides: a 2xx is delivered whatever its body says or does. */
export function judgeAnswer({ statusCode, hadSucceededBefore }: Answer): Verdict {
  if (statusCode !== null && statusCode >= 200 && statusCode <= 299) return { kind: 'delivered' };
  return {
    kind: 'failed',
    gone: statusCode === 410,
    refused: (statusCode === 401 || statusCode === 403) && hadSucceededBefore,
    honoursRetryAfter: statusCode === 429 || statusCode === 503,
  };
}
