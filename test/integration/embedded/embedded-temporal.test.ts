import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { startEmbeddedTemporal } from '../../../src/embedded/embedded-temporal.js';
import { readProcess } from '../../../src/embedded/process-identity.js';
import { silentProgress } from '../../../src/embedded/progress.js';
import { runCommand } from '../../../src/embedded/run-command.js';
import { searchAttributes } from '../../../workflows/contracts/names.js';
import { makeTestDataDir, startTestDevServer } from '../../support/engines.js';

const cleanups: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

function temporaryDataDir(): string {
  const dataDir = makeTestDataDir();
  cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
}

async function start(options: Parameters<typeof startTestDevServer>[0]) {
  const temporal = await startTestDevServer(options);
  cleanups.push(() => temporal.stop({ graceMs: 0 }));
  const ask = async (...args: string[]) => {
    const { code, output } = await runCommand(temporal.cli, [...args, '--address', temporal.address]);
    expect(output).not.toMatch(/^Error/);
    expect(code).toBe(0);
    return output;
  };
  return { ...temporal, ask };
}

const startRun = ['workflow', 'start', '--type', 'deliver', '--task-queue', 'nobody', '--workflow-id'];

describe('embedded Temporal', () => {
  it('answers on loopback with the namespace and the search attributes of Posthorn', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    const { ask } = await start({ dataDir, namespace: 'elsewhere' });
    const attributes = await ask('operator', 'search-attribute', 'list', '--namespace', 'elsewhere');
    for (const name of Object.values(searchAttributes)) expect(attributes).toMatch(new RegExp(`${name} +Keyword`));
    expect(existsSync(join(dataDir, 'temporal.db'))).toBe(true);
  });

  it('keeps its runs over kill -9 and starts again in the same place', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    const first = await start({ dataDir });
    await first.ask(...startRun, 'whd_kept');
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    const second = await start({ dataDir, port: first.port });
    expect(await second.ask('workflow', 'describe', '--workflow-id', 'whd_kept')).toMatch(/WorkflowId +whd_kept/);
  });

  it(
    "ends a killed parent's Temporal, found by its pid file, before it starts a new one",
    { timeout: 60_000 },
    async () => {
      const dataDir = temporaryDataDir();
      const first = await start({ dataDir });
      const second = await start({ dataDir, port: first.port });
      expect(readProcess(first.pid)).toBeNull();
      expect(readProcess(second.pid)).not.toBeNull();
    },
  );

  it('keeps its store from others, an old one too', { timeout: 60_000 }, async () => {
    const dataDir = temporaryDataDir();
    const modes = () =>
      readdirSync(dataDir)
        .filter((name) => name.startsWith('temporal.db'))
        .map((name) => statSync(join(dataDir, name)).mode & 0o777);
    const first = await start({ dataDir });
    expect(new Set(modes())).toEqual(new Set([0o600]));
    await first.stop({ graceMs: 10_000 });
    chmodSync(join(dataDir, 'temporal.db'), 0o644);
    await start({ dataDir });
    expect(new Set(modes())).toEqual(new Set([0o600]));
  });

  it('says so when the CLI is too old for it', async () => {
    const dataDir = temporaryDataDir();
    const cli = join(dataDir, 'old-temporal');
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(cli, '#!/bin/sh\necho "--db-filename --dynamic-config-value"\n');
    chmodSync(cli, 0o755);
    const options = { cli, dataDir, port: 1, uiPort: 2, namespace: 'default', progress: silentProgress };
    await expect(startEmbeddedTemporal(options)).rejects.toThrow(
      /too old and lacks --sqlite-pragma, --search-attribute/,
    );
  });
});
