import type { Logger } from './telemetry/logger.js';

/** A second Ctrl-C ends at once; the first one runs `stop` to its end. Resolves with the signal's name. */
export function onStopSignal(log: Logger): Promise<string> {
  return new Promise((resolve) => {
    let asked = false;
    const ask = (signal: NodeJS.Signals): void => {
      if (asked) {
        log.warn({ signal }, 'asked twice: ending at once');
        process.exit(130);
      }
      asked = true;
      resolve(signal);
    };
    process.on('SIGINT', ask);
    process.on('SIGTERM', ask);
  });
}

/** Runs an entry: configuration faults are said plainly, everything else that is fatal ends with exit code 1. */
export async function runEntry(main: () => Promise<void>): Promise<void> {
  try {
    await main();
    process.exit(0);
  } catch (error) {
    const plain =
      error instanceof Error && ['ConfigError', 'StartError', 'SearchAttributeTypeError'].includes(error.name);
    process.stderr.write(
      `${plain ? (error as Error).message : error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exit(1);
  }
}
