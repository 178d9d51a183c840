import { spawn } from 'node:child_process';

export interface CommandOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly user?: { readonly uid: number; readonly gid: number };
  readonly input?: string;
  readonly timeoutMs?: number;
}

/** How a short-lived command ended; `notFound` when there is no such program. */
export interface CommandResult {
  readonly code: number | null;
  readonly notFound: boolean;
  readonly timedOut: boolean;
  readonly stdout: string;
  /** Both streams in the order in which they came. */
  readonly output: string;
}

/** Runs a command to its end; what it answers is in the result, never an exception. */
export function runCommand(
  file: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(file, [...args], {
      cwd: '/',
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.env ? { env: options.env } : {}),
      ...options.user,
    });
    let stdout = '';
    let output = '';
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, options.timeoutMs ?? 60_000);
    const finish = (code: number | null, error?: NodeJS.ErrnoException): void => {
      clearTimeout(timer);
      const notFound = error?.code === 'ENOENT';
      resolve({ code, notFound, timedOut, stdout, output: error ? `${output}${error.message}` : output });
    };
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
      output += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => void (output += chunk));
    // A command that doesn't read its input closes the pipe: that isn't our failure.
    child.stdin.on('error', () => undefined).end(options.input ?? '');
    child.once('error', (error) => finish(null, error));
    child.once('close', (code) => finish(code));
  });
}

/** The last lines of what a command said. */
export const lastLines = (text: string, lines = 6): string => text.trim().split('\n').slice(-lines).join('\n');
