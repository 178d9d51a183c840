/** Runs the sample receiver by itself. */
import { startSampleReceiver } from './receiver.js';

const help = `A sample receiver for Posthorn's webhooks.

Usage: WEBHOOK_SECRET=whsec_… node dist/examples/receivers/node/main.js

  WEBHOOK_SECRET  the endpoint's secret, from the answer that created it; several, separated by commas, while you rotate
                  (it can be set later: PUT /secrets)
  PORT            where to listen, default 8410
  HOST            default 127.0.0.1

Deliveries go to POST /hook, handshakes to OPTIONS /hook. From this machine: GET /stats, PUT /secrets, PUT /mode. README.md beside the source says more.
`;

async function main(): Promise<number> {
  if (process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) {
    process.stdout.write(help);
    return 0;
  }
  const port = Number(process.env['PORT'] ?? 8410);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    process.stderr.write('PORT must be a number from 0 to 65535\n');
    return 2;
  }
  const secrets = (process.env['WEBHOOK_SECRET'] ?? '').split(/[\s,]+/).filter((secret) => secret !== '');
  const host = process.env['HOST'] ?? '127.0.0.1';
  const receiver = await startSampleReceiver({
    port,
    host,
    log: (line) => process.stdout.write(`${line}\n`),
  });
  receiver.setSecrets(secrets);
  process.stdout.write(`Listening on ${receiver.url}\n`);
  if (secrets.length === 0)
    process.stdout.write('WEBHOOK_SECRET is not set: requests are rejected until PUT /secrets\n');
  await new Promise<void>((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
  await receiver.stop();
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  const inUse = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
  process.stderr.write(inUse ? 'That port is in use: set PORT to another one\n' : `${String(error)}\n`);
  process.exitCode = 1;
}
