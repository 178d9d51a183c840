import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePorts } from '../src/embedded/ports.js';
import { pause } from '../src/pause.js';

const built = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export interface BenchedPosthorn {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly temporalAddress: string;
  stop(): Promise<void>;
}

const startTimeoutMs = 120_000;

/** `npm start` on free ports and an empty data directory: what is measured is what a newcomer gets. */
export async function startPosthorn(settings: Readonly<Record<string, string>> = {}): Promise<BenchedPosthorn> {
  const dataDir = mkdtempSync(join(tmpdir(), 'posthorn-bench-'));
  await chmod(dataDir, 0o711);
  const [http, postgres, temporal, ui] = await findFreePorts(4);
  const apiKey = 'bench-key-0123456789-0123456789';
  const child = spawn(process.execPath, [built('../src/standalone.js')], {
    env: {
      ...process.env,
      POSTHORN_DATA_DIR: dataDir,
      POSTHORN_HTTP_PORT: String(http),
      POSTHORN_POSTGRES_PORT: String(postgres),
      POSTHORN_TEMPORAL_PORT: String(temporal),
      POSTHORN_TEMPORAL_UI_PORT: String(ui),
      POSTHORN_SAMPLE_RECEIVER: 'off',
      POSTHORN_BOOTSTRAP_API_KEY: apiKey,
      POSTHORN_LOG_LEVEL: 'warn',
      ...settings,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const apiUrl = `http://127.0.0.1:${http}`;
  const deadline = Date.now() + startTimeoutMs;
  while (!(await answers(`${apiUrl}/readyz`))) {
    if (Date.now() > deadline || child.exitCode !== null) throw new Error('Posthorn did not start');
    await pause(200);
  }
  return {
    apiUrl,
    apiKey,
    temporalAddress: `127.0.0.1:${temporal}`,
    async stop() {
      child.kill('SIGINT');
      if (child.exitCode === null) await once(child, 'exit');
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

/** Runs `count` pieces of work, `width` at a time. */
export async function inParallel(
  count: number,
  width: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await work(next++);
    }),
  );
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
