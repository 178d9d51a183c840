import type { Logger } from './telemetry/logger.js';

/** The first signal resolves the promise, and the entry stops in order; a second one runs `endAtOnce` and ends the process. */
export function onStopSignal(log: Logger, endAtOnce: () => void = () => undefined): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const ask = (signal: NodeJS.Signals): void => {
      if (asked) {
        log.warn({ signal }, 'asked twice: ending at once');
        endAtOnce();
        process.exit(130);
      }
      asked = true;
      resolve(signal);
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, ask);
  });
}

/** Runs an entry: configuration faults are said plainly, everything else that is fatal ends with exit code 1. */
export async function runEntry(usage: string, main: () => Promise<void>): Promise<void> {
  const [argument] = process.argv.slice(2);
  if (argument !== undefined) {
    const asked = argument === '--help' || argument === '-h';
    const text = `${usage}\nSettings are environment variables: docs/reference/configuration.md\n`;
    (asked ? process.stdout : process.stderr).write(asked ? text : `Unknown argument '${argument}'.\n${text}`);
    process.exit(asked ? 0 : 2);
  }
  try {
    await main();
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${explain(error)}\n`);
    process.exit(1);
  }
}

/** What kept the embedded default from starting; its message says what to do, so nobody needs the stack. */
class StartError extends Error {
  override readonly name = 'StartError';
}

/** Plain errors of a start are told by their message alone; faults in our code keep their stack. */
export function asStartError(error: unknown): unknown {
  const plain = error instanceof Error && error.name === 'Error';
  return plain ? new StartError(error.message, { cause: error }) : error;
}

/** Our own errors say what to do; of the others the stack says where to look. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === 'Error' || error instanceof TypeError ? (error.stack ?? error.message) : error.message;
}
