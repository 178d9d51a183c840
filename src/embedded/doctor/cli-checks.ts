import { findInstalledTemporalCli } from '../temporal-cli.js';
import { runCommand } from '../run-command.js';
import { type Finding, fail, ok } from './finding.js';

/** Looks for the Temporal CLI without fetching it. */
export async function checkTemporalCli(options: {
  readonly cliPath: string | null;
  readonly cacheDir: string;
  readonly env: NodeJS.ProcessEnv;
}): Promise<{ readonly finding: Finding; readonly found: boolean }> {
  try {
    const path = await findInstalledTemporalCli(options);
    if (path === null) {
      return { found: false, finding: ok('Temporal CLI: none on this machine yet; npm start fetches it once') };
    }
    const version = (await runCommand(path, ['--version'], { env: options.env })).stdout.trim();
    return { found: true, finding: ok(`Temporal CLI ${path} (${version})`) };
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    return { found: false, finding: fail(what, 'Set TEMPORAL_CLI_PATH to the CLI, or unset it.') };
  }
}
