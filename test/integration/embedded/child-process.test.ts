import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { endStaleChildren, startChild } from '../../../src/embedded/child-process.js';
import { DataDirInUseError, findDataDirHolder, lockDataDir } from '../../../src/embedded/data-dir-lock.js';
import { readProcess, waitForProcessEnd } from '../../../src/embedded/process-identity.js';
import { runCommand } from '../../../src/embedded/run-command.js';
import { makeTestDataDir } from '../../support/engines.js';

const cleanups: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

function temporaryDataDir(): string {
  const dataDir = makeTestDataDir();
  cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
}

const stopsWhenAsked = `console.log('ready'); setInterval(() => {}, 1000)`;
const ignoresRequests = `process.on('SIGTERM', () => console.log('no')); ${stopsWhenAsked}`;

async function start(dataDir: string, script: string) {
  const child = await startChild({ name: 'sample', file: process.execPath, args: ['-e', script], dataDir });
  cleanups.push(() => child.stop({ graceMs: 0 }));
  await expect.poll(() => readFileSync(child.logFile, 'utf8'), { timeout: 10_000 }).toContain('ready');
  return child;
}

const processGroupOf = async (pid: number): Promise<number> =>
  Number((await runCommand('ps', ['-o', 'pgid=', '-p', String(pid)])).stdout);

/** A living process that has nothing to do with Posthorn. */
function startStranger() {
  const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  cleanups.push(() => void stranger.kill('SIGKILL'));
  return stranger.pid ?? 0;
}

describe('an embedded child', () => {
  it("has a process group of its own, which a terminal's Ctrl-C doesn't reach", async () => {
    const child = await start(temporaryDataDir(), stopsWhenAsked);
    expect(await processGroupOf(child.pid)).toBe(child.pid);
    expect(await processGroupOf(process.pid)).not.toBe(child.pid);
  });

  it('knows nothing of our secrets, and what it writes is not for others', async () => {
    const dataDir = temporaryDataDir();
    const written = join(dataDir, 'written');
    process.env['POSTHORN_ENCRYPTION_KEYS'] = 'k1:secret';
    try {
      await start(dataDir, `require('fs').writeFileSync('${written}', JSON.stringify(process.env)); ${stopsWhenAsked}`);
    } finally {
      delete process.env['POSTHORN_ENCRYPTION_KEYS'];
    }
    const env = JSON.parse(readFileSync(written, 'utf8')) as NodeJS.ProcessEnv;
    expect(env['PATH']).toBe(process.env['PATH']);
    expect(Object.keys(env).filter((name) => /POSTHORN|npm_|VITEST/.test(name))).toEqual([]);
    expect(statSync(written).mode & 0o777).toBe(0o600);
  });

  it('ends when asked, and its pid file with it', async () => {
    const dataDir = temporaryDataDir();
    const child = await start(dataDir, stopsWhenAsked);
    const pidFile = join(dataDir, 'run', 'sample.pid');
    expect(existsSync(pidFile)).toBe(true);
    expect(await child.stop({ graceMs: 10_000 })).toEqual({ code: null, signal: 'SIGTERM' });
    expect(existsSync(pidFile)).toBe(false);
    expect(child.isRunning()).toBe(false);
    expect(await child.stop({ graceMs: 10_000 })).toEqual(await child.exited);
  });

  it('is killed when it does not end in time', async () => {
    const child = await start(temporaryDataDir(), ignoresRequests);
    expect(await child.stop({ graceMs: 100 })).toEqual({ code: null, signal: 'SIGKILL' });
    expect(child.logTail()).toContain('no');
  });

  it('is killed at once by a second stop in a hurry', async () => {
    const child = await start(temporaryDataDir(), ignoresRequests);
    const patient = child.stop({ graceMs: 60_000 });
    await expect.poll(() => child.logTail()).toContain('no');
    expect(await child.stop({ graceMs: 0 })).toEqual({ code: null, signal: 'SIGKILL' });
    expect(await patient).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('tells how it ended by itself', async () => {
    const child = await start(temporaryDataDir(), `console.log('ready'); process.exitCode = 3`);
    expect(await child.exited).toEqual({ code: 3, signal: null });
  });

  it('keeps one earlier log, and nobody else may read them', async () => {
    const dataDir = temporaryDataDir();
    const first = await start(dataDir, `console.log('first'); ${stopsWhenAsked}`);
    await first.stop({ graceMs: 5_000 });
    const second = await start(dataDir, `console.log('second'); ${stopsWhenAsked}`);
    expect(second.logTail()).not.toContain('first');
    expect(readFileSync(`${second.logFile}.1`, 'utf8')).toContain('first');
    expect(statSync(second.logFile).mode & 0o077).toBe(0);
  });

  it('names the program that could not be started', async () => {
    const options = { name: 'sample', file: '/nowhere/program', args: [], dataDir: temporaryDataDir() };
    await expect(startChild(options)).rejects.toThrow(/\/nowhere\/program could not be started/);
  });
});

describe('a stale child', () => {
  it('is ended, found by its pid file', async () => {
    const dataDir = temporaryDataDir();
    const child = await start(dataDir, stopsWhenAsked);
    expect(await endStaleChildren(dataDir)).toEqual(['sample']);
    expect(await child.exited).toEqual({ code: null, signal: 'SIGTERM' });
    expect(await endStaleChildren(dataDir)).toEqual([]);
  });

  it('is not what another process with the same number and another command is', async () => {
    const dataDir = temporaryDataDir();
    const pid = startStranger();
    mkdirSync(join(dataDir, 'run'));
    const record = { pid, startedAt: readProcess(pid)?.startedAt, args: ['--data', dataDir], stopSignal: 'SIGTERM' };
    writeFileSync(join(dataDir, 'run', 'sample.pid'), JSON.stringify(record));
    expect(await endStaleChildren(dataDir)).toEqual([]);
    expect(readProcess(pid)).not.toBeNull();
  });

  it('is not what a later process with the same number and the same command is', async () => {
    const dataDir = temporaryDataDir();
    const pid = startStranger();
    mkdirSync(join(dataDir, 'run'));
    const record = { pid, startedAt: '1', args: ['-e', 'setInterval(() => {}, 1000)'], stopSignal: 'SIGTERM' };
    writeFileSync(join(dataDir, 'run', 'sample.pid'), JSON.stringify(record));
    expect(await endStaleChildren(dataDir)).toEqual([]);
    expect(readProcess(pid)).not.toBeNull();
  });

  it('is forgotten when its pid file is damaged', async () => {
    const dataDir = temporaryDataDir();
    mkdirSync(join(dataDir, 'run'));
    writeFileSync(join(dataDir, 'run', 'sample.pid'), '{"pid":');
    expect(await endStaleChildren(dataDir)).toEqual([]);
    expect(existsSync(join(dataDir, 'run', 'sample.pid'))).toBe(false);
  });
});

describe('the lock of the data directory', () => {
  it('lets one start in, and tells the second one who holds it', () => {
    const dataDir = temporaryDataDir();
    const lock = lockDataDir(dataDir);
    expect(findDataDirHolder(dataDir)).toBe(process.pid);
    expect(() => lockDataDir(dataDir)).toThrow(DataDirInUseError);
    expect(() => lockDataDir(dataDir)).toThrow(`already running in ${dataDir} (process ${process.pid})`);
    expect(() => lockDataDir(dataDir)).toThrow('POSTHORN_DATA_DIR');
    lock.release();
    expect(findDataDirHolder(dataDir)).toBeNull();
    lockDataDir(dataDir).release();
  });

  it('is taken over from a killed process', async () => {
    const dataDir = temporaryDataDir();
    const pid = startStranger();
    const identity = readProcess(pid);
    if (identity === null) throw new Error('the stranger is gone');
    writeFileSync(join(dataDir, 'posthorn.lock'), JSON.stringify({ pid, ...identity }));
    expect(() => lockDataDir(dataDir)).toThrow(`process ${pid}`);
    process.kill(pid, 'SIGKILL');
    await waitForProcessEnd(pid, identity, 10_000);
    const lock = lockDataDir(dataDir);
    expect(findDataDirHolder(dataDir)).toBe(process.pid);
    lock.release();
  });

  it('is taken over when its number belongs to a later process, or it is damaged', () => {
    const dataDir = temporaryDataDir();
    const pid = startStranger();
    for (const stale of [JSON.stringify({ pid, startedAt: '1', command: 'node' }), '', '{"pid"']) {
      writeFileSync(join(dataDir, 'posthorn.lock'), stale);
      const lock = lockDataDir(dataDir);
      expect(findDataDirHolder(dataDir)).toBe(process.pid);
      lock.release();
    }
  });
});
