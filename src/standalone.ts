import { relative } from 'node:path';
import { startSampleReceiver } from '../examples/receivers/node/receiver.js';
import { ensureServiceKey } from './api-keys.js';
import { ensureSampleEndpoint } from './embedded/sample-endpoint.js';
import { welcome } from './embedded/welcome.js';
import { loadConfig } from './config/config.js';
import { Core } from './core.js';
import { cacheDirectory } from './embedded/cache-dir.js';
import { endStaleChildren } from './embedded/child-process.js';
import { ensureDataDir } from './embedded/data-dir.js';
import { lockDataDir } from './embedded/data-dir-lock.js';
import { apiKeyFile, embeddedKeyRing, writePrivate } from './embedded/data-dir-secrets.js';
import { startEmbeddedPostgres } from './embedded/embedded-postgres.js';
import { startEmbeddedTemporal } from './embedded/embedded-temporal.js';
import { embeddedPortWishes } from './embedded/port-wishes.js';
import { checkPorts } from './embedded/ports.js';
import { createProgress, silentProgress, withProgress } from './embedded/progress.js';
import { type Engine, Supervisor } from './embedded/supervisor.js';
import { findTemporalCli } from './embedded/temporal-cli.js';
import { createHttpApp } from './http/http-app.js';
import { pause } from './pause.js';
import { asStartError, onStopSignal, runEntry } from './process.js';
import { createLogger } from './telemetry/logger.js';
import { keepHistories } from './temporal/retention.js';
import { installRuntime } from './temporal/worker-host.js';
import { WorkerProcess } from './worker-process.js';

/** How long a stop waits for a start that is under way. */
const startPatienceMs = 10_000;

/** Everything in one process, with embedded engines where none are configured: `npm start`. */
const usage =
  'Usage: npm start\nRuns everything: API, worker, sample receiver, and embedded Postgres and Temporal where none are configured.';

await runEntry(usage, async () => {
  const config = loadConfig('standalone');
  const log = createLogger(config.logLevel);
  const progress = createProgress(process.stderr);
  /** Engines that run just now; the second Ctrl-C ends them with us. */
  const engines: Supervisor<Engine & { readonly pid: number }>[] = [];
  const stopped = onStopSignal(log, () => {
    for (const engine of engines) killQuietly(engine.current.pid);
  });
  let stopAsked = false;
  void stopped.then(() => (stopAsked = true));
  /** Between the steps of a start: who asks to stop does not wait for the rest of it. */
  const goOn = (): void => {
    if (stopAsked) throw new Error('asked to stop while it starts');
  };
  installRuntime(log);

  const dataDir = ensureDataDir(config.dataDir);
  const lock = lockDataDir(dataDir);
  /** What has been started, in order; it is stopped in the opposite one. */
  const stops: (() => Promise<unknown> | void)[] = [() => lock.release()];
  const start = async (): Promise<string> => {
    const stale = await endStaleChildren(dataDir);
    if (stale.length > 0) progress.note(`Ended what a killed Posthorn had left running: ${stale.join(', ')}`);
    await checkPorts(embeddedPortWishes(config));

    const postgres =
      config.database.url === null
        ? await Supervisor.start(
            'Postgres',
            () => startEmbeddedPostgres({ dataDir, port: config.database.embeddedPort, progress }),
            log,
          )
        : null;
    if (postgres) {
      engines.push(postgres);
      stops.push(() => postgres.stop());
    }
    goOn();

    let temporal: Supervisor<Awaited<ReturnType<typeof startEmbeddedTemporal>>> | null = null;
    let cli = 'temporal';
    if (config.temporal.address === null) {
      cli = await findTemporalCli({
        cliPath: config.temporal.cliPath,
        cacheDir: cacheDirectory(process.env, dataDir),
        progress,
      });
      goOn();
      const { embeddedPort: port, embeddedUiPort: uiPort, namespace } = config.temporal;
      temporal = await Supervisor.start(
        'Temporal',
        () => startEmbeddedTemporal({ cli, dataDir, port, uiPort, namespace, progress }),
        log,
      );
      const started = temporal;
      engines.push(started);
      stops.push(() => started.stop());
    }
    goOn();

    if (config.mail.smtpUrl === null && config.mail.dir !== null)
      progress.note(
        `Mails to owners of endpoints are written to ${relative(process.cwd(), config.mail.dir) || config.mail.dir}`,
      );
    const core = new Core({
      config,
      databaseUrl: config.database.url ?? postgres!.current.url,
      temporalAddress: config.temporal.address ?? temporal!.current.address,
      keyRing: config.encryptionKeys ?? embeddedKeyRing(dataDir),
      connection: 'native',
      log,
    });
    await core.start();
    stops.push(() => core.close());
    goOn();
    const generatedKey = await ensureServiceKey(core, config.bootstrapApiKey);
    const key = generatedKey ?? config.bootstrapApiKey;
    if (key) writePrivate(apiKeyFile(dataDir), key);

    const worker = new WorkerProcess(core);
    stops.push(() => worker.stop());
    const polling = worker.start();
    // With an own cluster that is away the API starts all the same.
    if (temporal) {
      await withProgress(progress, 'Starting the workers', () => polling);
      await keepHistories(core.temporal, log);
    }
    void polling.then(() => worker.failed).catch((error: unknown) => fatal(error));

    core.startSweeping();
    stops.push(() => core.stopStarting());
    if (config.metrics.enabled) core.metrics.watchProcess();
    const app = await createHttpApp(core);
    await app.listen({ host: config.http.host, port: config.http.port });
    stops.push(() => app.close());

    let receiverUrl: string | null = null;
    if (config.sampleReceiver.enabled) {
      const secret = await ensureSampleEndpoint(core, config.sampleReceiver.port);
      const receiver = await startSampleReceiver({
        port: config.sampleReceiver.port,
        host: '127.0.0.1',
        secret,
        log: (line) => log.info({}, `sample receiver: ${line}`),
      });
      receiverUrl = receiver.url;
      stops.push(() => receiver.stop());
    }
    return welcome({
      apiUrl: `http://127.0.0.1:${config.http.port}`,
      uiUrl: temporal?.current.uiUrl ?? config.temporal.uiUrl,
      receiverUrl,
      apiKey: generatedKey,
      apiKeyFile: relative(process.cwd(), apiKeyFile(dataDir)) || apiKeyFile(dataDir),
      temporalCli: cli,
      temporalAddress: config.temporal.address ?? temporal!.current.address,
      namespace: config.temporal.namespace,
      dataDir: relative(process.cwd(), dataDir) || dataDir,
      allowHttp: config.delivery.allowHttp,
    });
  };

  let fatal!: (error: unknown) => void;
  const failed = new Promise<never>((_, reject) => (fatal = reject));
  const started = start().catch((error: unknown) => {
    throw asStartError(error);
  });
  try {
    const text = await Promise.race([started, stopped.then(() => null), failed]);
    if (text !== null) {
      process.stdout.write(text);
      await Promise.race([stopped, failed]);
    }
  } finally {
    // A refusal to start has nothing to stop but the lock.
    const line =
      stops.length > 1
        ? progress.start('Stopping: what is in flight finishes first; Ctrl-C again ends at once')
        : silentProgress.start('');
    // Asked during the start: what is being started now is stopped too.
    await Promise.race([started.catch(() => undefined), pause(startPatienceMs)]);
    for (const stop of stops.toReversed()) {
      await Promise.resolve(stop()).catch((error: unknown) => log.warn({ err: error }, 'not stopped cleanly'));
    }
    await endStaleChildren(dataDir);
    line.done();
  }
});

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
