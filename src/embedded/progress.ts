/** Where a line of progress goes; a terminal's stream fits. */
export interface ProgressStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

/** One thing that takes time, from its start to its end. */
export interface ProgressLine {
  update(detail: string): void;
  done(detail?: string): void;
  fail(detail?: string): void;
}

/** Tells a person what is being fetched or started, so that no wait is silent. */
export interface Progress {
  start(what: string): ProgressLine;
  note(text: string): void;
}

const TERMINAL_REFRESH_MS = 250;
const PLAIN_REFRESH_MS = 10_000;

const inSeconds = (ms: number): string => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`);

/** Rewrites one line on a terminal; elsewhere prints plain lines, and one every 10 s while something lasts. */
export function createProgress(stream: ProgressStream): Progress {
  const terminal = stream.isTTY === true;
  let open: (() => void) | null = null;

  const rewrite = (text: string): void => {
    // A line longer than the terminal would wrap, and the next rewrite would leave its first half standing.
    const width = Math.max(20, (stream.columns ?? 80) - 1);
    stream.write(`\r\u001B[2K${text.length > width ? `${text.slice(0, width - 1)}…` : text}`);
  };
  const print = (text: string): void => {
    if (terminal) stream.write(`\r\u001B[2K${text}\n`);
    else stream.write(`${text}\n`);
    open?.();
  };

  return {
    note: (text) => print(`  ${text}`),
    start(what) {
      const startedAt = Date.now();
      let detail = '';
      let ended = false;
      const elapsed = (): string => inSeconds(Date.now() - startedAt);
      const line = (): string => `… ${what}${detail === '' ? '' : `: ${detail}`} (${elapsed()})`;
      const draw = (): void => (terminal ? rewrite(line()) : void 0);
      if (terminal) {
        open = draw;
        draw();
      } else {
        stream.write(`… ${what}\n`);
      }
      const timer = setInterval(
        () => (terminal ? draw() : stream.write(`${line()}\n`)),
        terminal ? TERMINAL_REFRESH_MS : PLAIN_REFRESH_MS,
      );
      timer.unref();
      const end = (mark: string, text: string | undefined): void => {
        if (ended) return;
        ended = true;
        clearInterval(timer);
        if (open === draw) open = null;
        print(`${mark} ${what}${text === undefined ? '' : `: ${text}`} (${elapsed()})`);
      };
      return {
        update(text) {
          if (ended || text === detail) return;
          detail = text;
          if (terminal) draw();
          else stream.write(`${line()}\n`);
        },
        done: (text) => end('✔', text),
        fail: (text) => end('✖', text),
      };
    },
  };
}

/** For tests, and for callers that tell in another way. */
export const silentProgress: Progress = {
  note: () => undefined,
  start: () => ({ update: () => undefined, done: () => undefined, fail: () => undefined }),
};

/** Runs one step under a line of progress that ends with its outcome. */
export async function withProgress<T>(
  progress: Progress,
  what: string,
  step: (line: ProgressLine) => Promise<T>,
): Promise<T> {
  const line = progress.start(what);
  try {
    const result = await step(line);
    line.done();
    return result;
  } catch (error) {
    line.fail();
    throw error;
  }
}
