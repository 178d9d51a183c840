/** `npm run demo:incident`: an endpoint is down under traffic, and one request brings everything over. */
import { DemoError } from './demo/posthorn-client.js';
import { IncidentApi } from './incident/incident-api.js';
import { PosthornProcess } from './incident/posthorn-process.js';
import { playIncident } from './incident/story.js';

const help = `Plays an incident: an endpoint is down for a day, shortened to seconds, under traffic, and is disabled. Then one
request brings over all that it didn't get, and the receiver's own count equals what was published.

Usage: npm run demo:incident

It brings a Posthorn of its own, with engines, data directory and ports that it removes at the end. Takes under two minutes.

Exit code: 0 when the counts are equal, 1 otherwise.
`;

const print = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  if (process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) {
    process.stdout.write(help);
    return 0;
  }
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort());
  let posthorn: PosthornProcess | null = null;
  let exitCode = 0;
  try {
    print('Starting a Posthorn of its own …');
    posthorn = await PosthornProcess.start(
      {
        // Days, shortened: the endpoint is disabled after so long without one success, and stays so until it is enabled.
        POSTHORN_HEALTH_DISABLE_AFTER: '8s',
        POSTHORN_HEALTH_AUTO_ENABLE: 'off',
        POSTHORN_LOG_LEVEL: 'warn',
      },
      interrupted.signal,
    );
    print(`Posthorn at ${posthorn.baseUrl}, its workflows at ${posthorn.webUiUrl}`);
    await playIncident({
      api: new IncidentApi(posthorn.baseUrl, posthorn.apiKey),
      signal: interrupted.signal,
      print,
    });
    print('\nNothing is missing, and nothing came twice.');
  } catch (error) {
    exitCode = 1;
    process.stderr.write(`✗ ${reasonOf(error, interrupted.signal)}\n`);
  }
  if (posthorn && !(await posthorn.stop())) {
    process.stderr.write('✗ Posthorn did not stop cleanly\n');
    exitCode = 1;
  }
  return exitCode;
}

function reasonOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'interrupted';
  if (error instanceof DemoError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

process.exitCode = await main();
