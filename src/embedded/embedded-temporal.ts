import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { waitForFrontend } from '../temporal/frontend-readiness.js';
import { searchAttributes } from '../../workflows/contracts/names.js';
import { type ChildExit, plainEnv, startChild } from './child-process.js';
import { ensureDataDir } from './data-dir.js';
import { type Progress, withProgress } from './progress.js';
import { lastLines, runCommand } from './run-command.js';

export interface EmbeddedTemporalOptions {
  /** The CLI's path, from `findTemporalCli`. */
  readonly cli: string;
  readonly dataDir: string;
  readonly port: number;
  /** Null: without the Web UI. */
  readonly uiPort: number | null;
  readonly namespace: string;
  readonly progress: Progress;
}

export interface EmbeddedTemporal {
  readonly address: string;
  readonly uiUrl: string;
  readonly pid: number;
  readonly exited: Promise<ChildExit>;
  /** Killed after `graceMs`; 0 kills at once. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
}

const STOP_GRACE_MS = 15_000;
const START_TIMEOUT_MS = 60_000;

/** Without these the server can't be run as Posthorn needs it. */
const requiredFlags = ['--db-filename', '--sqlite-pragma', '--dynamic-config-value', '--search-attribute'] as const;

/**
 * Starts Temporal's development server on loopback with its store in the data directory.
 * The search attributes and the retention that exist in an old store stay: the flags matter only for a new one.
 * @throws with the end of its log when it doesn't come up.
 */
export async function startEmbeddedTemporal(options: EmbeddedTemporalOptions): Promise<EmbeddedTemporal> {
  const { cli, port, uiPort, namespace, progress } = options;
  const dataDir = ensureDataDir(options.dataDir);
  const store = join(dataDir, 'temporal.db');
  makePrivate(store);
  const address = `127.0.0.1:${port}`;
  const flags = await readFlags(cli);
  const args = [
    'server',
    'start-dev',
    '--ip=127.0.0.1',
    `--port=${port}`,
    uiPort === null ? '--headless' : `--ui-port=${uiPort}`,
    `--db-filename=${store}`,
    // Twice the rate at half the CPU, and safe: Postgres is the truth.
    '--sqlite-pragma=journal_mode=wal',
    '--sqlite-pragma=synchronous=normal',
    '--dynamic-config-value=matching.enableFairness=true',
    // A machine that runs Posthorn on loopback shouldn't find it calling home.
    '--dynamic-config-value=frontend.enableServerVersionCheck=false',
    ...(flags.includes('--ui-disable-news-fetch') ? ['--ui-disable-news-fetch'] : []),
    ...(namespace === 'default' ? [] : [`--namespace=${namespace}`]),
    ...Object.values(searchAttributes).map((name) => `--search-attribute=${name}=Keyword`),
  ];
  const child = await withProgress(progress, `Starting Temporal on port ${port}`, async () => {
    const started = await startChild({ name: 'temporal', file: cli, args, dataDir });
    const goOn = (): boolean => started.isRunning();
    if (await waitForFrontend({ address, namespace, timeoutMs: START_TIMEOUT_MS, goOn })) return started;
    const how = started.isRunning() ? `did not answer within ${START_TIMEOUT_MS / 1000} s` : 'ended while it started';
    await started.stop({ graceMs: STOP_GRACE_MS });
    throw new Error(`Temporal ${how}. Its log (${started.logFile}) ends with:\n${started.logTail()}`);
  });
  return {
    address,
    uiUrl: uiPort === null ? '' : `http://127.0.0.1:${uiPort}`,
    pid: child.pid,
    exited: child.exited,
    async stop({ graceMs = STOP_GRACE_MS } = {}) {
      await child.stop({ graceMs });
    },
  };
}

/** A store that an earlier version made could be read by everybody. */
function makePrivate(store: string): void {
  for (const file of [store, `${store}-wal`, `${store}-shm`]) if (existsSync(file)) chmodSync(file, 0o600);
}

async function readFlags(cli: string): Promise<string> {
  const { code, output } = await runCommand(cli, ['server', 'start-dev', '--help'], { env: plainEnv() });
  const missing = requiredFlags.filter((flag) => !output.includes(flag));
  if (code === 0 && missing.length === 0) return output;
  throw new Error(
    `${cli} can't run Temporal's development server as Posthorn needs it: ` +
      `${code === 0 ? `it is too old and lacks ${missing.join(', ')}` : lastLines(output)}. ` +
      'Set TEMPORAL_CLI_PATH to another Temporal CLI.',
  );
}
