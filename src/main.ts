import { ensureServiceKey } from './api-keys.js';
import { loadConfig } from './config/config.js';
import { Core } from './core.js';
import { createHttpApp } from './http/http-app.js';
import { onStopSignal, runEntry } from './process.js';
import { createLogger } from './telemetry/logger.js';

/** The API process: takes events, starts workflows, sweeps. It runs no worker. */
const usage =
  'Usage: npm run start:api\nTakes events over REST, starts their workflows, and sweeps. Needs POSTHORN_DATABASE_URL, TEMPORAL_ADDRESS, POSTHORN_ENCRYPTION_KEYS.';

await runEntry(usage, async () => {
  const config = loadConfig('api');
  const log = createLogger(config.logLevel);
  const stopped = onStopSignal(log);
  const core = new Core({
    config,
    // loadConfig() has made sure of all three.
    databaseUrl: config.database.url!,
    temporalAddress: config.temporal.address!,
    keyRing: config.encryptionKeys!,
    connection: 'plain',
    log,
  });
  // Also a process that still waits for Postgres ends when it is asked to.
  if (await Promise.race([core.start().then(() => false), stopped.then(() => true)])) return;
  const generated = await ensureServiceKey(core, config.bootstrapApiKey);
  if (generated) process.stdout.write(`The first service API key, shown once: ${generated}\n`);
  core.startSweeping();
  if (config.metrics.enabled) core.metrics.watchProcess();
  const app = await createHttpApp(core);
  await app.listen({ host: config.http.host, port: config.http.port });
  log.info({ host: config.http.host, port: config.http.port }, 'listening');
  log.info({ signal: await stopped }, 'stopping');
  await app.close();
  await core.stopStarting();
  await core.close();
});
