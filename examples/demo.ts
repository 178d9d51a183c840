/** `npm run demo`: plays what Posthorn is for against a running `npm start`, a line a step. */
import { DemoError, PosthornClient } from './demo/posthorn-client.js';
import { readSettings } from './demo/settings.js';
import { playStory } from './demo/story.js';

const help = `Plays what Posthorn is for against a running \`npm start\`, a line a step.

Usage: npm run demo

It starts receivers of its own on free ports, creates endpoints for event types of its own, and removes them at the end:
  deliver an event · redeliver it · break the receiver's secret and repair it · an endpoint that is down · it comes back

  POSTHORN_HTTP_PORT          the API's port on this machine, default 8400
  POSTHORN_API_URL            or its whole address, such as http://127.0.0.1:8400
  POSTHORN_API_KEY            the key; else POSTHORN_BOOTSTRAP_API_KEY; else the file api-key in the data directory
  POSTHORN_DATA_DIR           the data directory, default .posthorn

Exit code: 0 when every step was seen to work, 1 otherwise.
`;

const print = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  if (process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) {
    process.stdout.write(help);
    return 0;
  }
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort());
  try {
    const { baseUrl, apiKey } = readSettings(process.env);
    const client = new PosthornClient(baseUrl, apiKey, interrupted.signal);
    print(`Posthorn at ${baseUrl}`);
    await playStory({ client, signal: interrupted.signal, print });
    print('\nEvery step worked.');
    return 0;
  } catch (error) {
    const reason = interrupted.signal.aborted
      ? 'interrupted'
      : error instanceof DemoError
        ? error.message
        : error instanceof Error
          ? (error.stack ?? error.message)
          : String(error);
    process.stderr.write(`✗ ${reason}\n`);
    return 1;
  }
}

process.exitCode = await main();
