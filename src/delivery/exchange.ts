import type { Dispatcher } from 'undici';
import type { Connection } from './connection.js';
import type { Deadline } from './deadline.js';
import type { Phase } from './error-codes.js';
import type { AnswerReader } from './read-answer.js';

/** How one request on one connection ended. `written`: it was handed to the socket, so the endpoint may have seen it. */
export type Ending =
  | { readonly kind: 'complete'; readonly written: true }
  /** More body came than is read. */
  | { readonly kind: 'cut'; readonly written: true }
  | { readonly kind: 'deadline'; readonly written: boolean; readonly phase: Phase }
  | { readonly kind: 'error'; readonly written: boolean; readonly phase: Phase; readonly error: unknown };

export interface Message {
  readonly method: 'POST' | 'OPTIONS';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
}

/** Sends a request and reads its answer into `answer`, until the end, the read limit, an error or the deadline. Never rejects. */
export function exchange(
  connection: Connection,
  url: URL,
  { method, headers, body }: Message,
  answer: AnswerReader,
  deadline: Deadline,
): Promise<Ending> {
  return new Promise((resolve) => {
    let written = false;
    let settled = false;
    const phase = (): Phase => {
      if (answer.statusCode !== null) return 'body';
      return written ? 'response' : connection.connectPhase;
    };
    const settle = (ending: Ending) => {
      if (settled) return;
      settled = true;
      forget();
      resolve(ending);
    };
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(controller) {
        // Past the deadline nothing may leave any more.
        if (settled) return controller.abort(new Error('settled'));
        written = true;
        connection.head.reset();
      },
      onResponseStart(controller, statusCode) {
        if (statusCode < 200) return;
        connection.head.final();
        const raw = controller.rawHeaders;
        answer.begin(statusCode, Array.isArray(raw) ? raw : []);
      },
      onResponseData(_controller, chunk) {
        if (!settled && !answer.take(chunk)) settle({ kind: 'cut', written: true });
      },
      onResponseEnd() {
        settle({ kind: 'complete', written: true });
      },
      onResponseError(_controller, error) {
        settle({ kind: 'error', written, phase: phase(), error });
      },
    };
    const forget = deadline.onExpiry(() => queueMicrotask(() => settle({ kind: 'deadline', written, phase: phase() })));
    if (deadline.expired) return;
    connection.client.dispatch({ path: `${url.pathname}${url.search}`, method, headers, body }, handler);
  });
}
