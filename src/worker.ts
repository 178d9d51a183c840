import { loadConfig } from './config/config.js';
import { Core } from './core.js';
import { onStopSignal, runEntry } from './process.js';
import { createLogger } from './telemetry/logger.js';
import { startMetricsServer } from './telemetry/metrics-server.js';
import { installRuntime } from './temporal/worker-host.js';
import { WorkerProcess } from './worker-process.js';

/** The worker process: runs workflows and makes the attempts. Sweeps too, so that deliveries go on without an API process. */
const usage =
  'Usage: npm run start:worker\nRuns the workflows and makes the attempts. Needs POSTHORN_DATABASE_URL, TEMPORAL_ADDRESS, POSTHORN_ENCRYPTION_KEYS.';

await runEntry(usage, async () => {
  const config = loadConfig('worker');
  const log = createLogger(config.logLevel);
  const stopped = onStopSignal(log);
  installRuntime(log);
  const core = new Core({
    config,
    // loadConfig() has made sure of all three.
    databaseUrl: config.database.url!,
    temporalAddress: config.temporal.address!,
    keyRing: config.encryptionKeys!,
    connection: 'native',
    log,
  });
  // Also a process that still waits for Postgres ends when it is asked to.
  if (await Promise.race([core.start().then(() => false), stopped.then(() => true)])) return;
  const { port } = config.metrics;
  const metrics =
    port === null ? null : await startMetricsServer(core.metricsPage, { host: config.http.host, port, log });
  if (metrics) core.metrics.watchProcess();
  core.startSweeping();
  const worker = new WorkerProcess(core);
  const ended = await Promise.race([stopped, worker.start().then(() => worker.failed)]);
  log.info({ signal: ended }, 'stopping');
  await core.stopStarting();
  await worker.stop();
  await metrics?.stop();
  await core.close();
});
