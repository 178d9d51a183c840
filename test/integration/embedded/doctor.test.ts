import { mkdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { lockDataDir } from '../../../src/embedded/data-dir-lock.js';
import { checkNode } from '../../../src/embedded/doctor/machine-checks.js';
import { type Finding, formatFinding } from '../../../src/embedded/doctor/finding.js';
import { runDoctor } from '../../../src/embedded/doctor/run-doctor.js';
import { findFreePorts } from '../../../src/embedded/ports.js';
import { runCommand } from '../../../src/embedded/run-command.js';
import { makeTestDataDir, startTestDevServer, startTestPostgres } from '../../support/engines.js';

const cleanups: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function freshMachine() {
  const dataDir = makeTestDataDir();
  cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const [http, postgres, temporal, ui, receiver] = (await findFreePorts(5)).map(String);
  mkdirSync(join(dataDir, 'bin'));
  return {
    HOME: dataDir,
    PATH: join(dataDir, 'bin'),
    POSTHORN_DATA_DIR: join(dataDir, '.posthorn'),
    POSTHORN_HTTP_PORT: http,
    POSTHORN_POSTGRES_PORT: postgres,
    POSTHORN_TEMPORAL_PORT: temporal,
    POSTHORN_TEMPORAL_UI_PORT: ui,
    POSTHORN_SAMPLE_RECEIVER_PORT: receiver,
  } satisfies NodeJS.ProcessEnv;
}

async function diagnose(env: NodeJS.ProcessEnv) {
  const findings: Finding[] = [];
  const failures = await runDoctor(env, (finding) => findings.push(finding));
  const about = (text: string) => findings.find(({ what }) => what.includes(text));
  return { findings, failures, about };
}

describe('the doctor', () => {
  it('finds nothing in the way on a fresh machine, and makes nothing on it', { timeout: 60_000 }, async () => {
    const env = await freshMachine();
    const { failures, findings, about } = await diagnose(env);
    expect(findings.filter(({ status }) => status === 'FAIL')).toEqual([]);
    expect(failures).toBe(0);
    expect(about(env.POSTHORN_DATA_DIR)?.what).toContain('can be made');
    expect(about('none on this machine yet')?.status).toBe('ok');
    expect(about('There is no python3')).toMatchObject({ status: 'warn' });
    expect(about('no key is set')?.status).toBe('ok');
    expect(() => rmSync(env.POSTHORN_DATA_DIR, { recursive: true })).toThrow(/ENOENT/);
  });

  it('names every bad setting, and goes on with the other checks', { timeout: 60_000 }, async () => {
    const env = { ...(await freshMachine()), POSTHORN_ENCRYPTION_KEYS: 'k1:short', POSTHORN_HTTP_PROT: '1' };
    const { failures, about } = await diagnose(env);
    expect(failures).toBe(2);
    expect(about('POSTHORN_ENCRYPTION_KEYS')?.status).toBe('FAIL');
    expect(about('POSTHORN_HTTP_PROT')?.status).toBe('FAIL');
    expect(about('are free')?.status).toBe('ok');
  });

  it("fails on a stranger's port, but not on those of a running Posthorn", { timeout: 60_000 }, async () => {
    const env = await freshMachine();
    const server = createServer().listen(Number(env.POSTHORN_HTTP_PORT), '127.0.0.1');
    cleanups.push(() => void server.close());
    const before = await diagnose(env);
    expect(before.failures).toBe(1);
    expect(before.about(`Port ${env.POSTHORN_HTTP_PORT}`)).toMatchObject({
      status: 'FAIL',
      todo: 'Set POSTHORN_HTTP_PORT to another one.',
    });
    const lock = lockDataDir(env.POSTHORN_DATA_DIR);
    cleanups.push(() => lock.release());
    const during = await diagnose(env);
    expect(during.about('in use by the Posthorn that is running')?.status).toBe('ok');
  });

  it('tells what a database and a Temporal of your own lack', { timeout: 120_000 }, async () => {
    const [postgres, temporal] = await Promise.all([startTestPostgres(), startTestDevServer()]);
    cleanups.push(
      () => postgres.stop({ graceMs: 0 }),
      () => temporal.stop({ graceMs: 0 }),
    );
    const key = `k1:${Buffer.alloc(32, 1).toString('base64')}`;
    const env = {
      ...(await freshMachine()),
      POSTHORN_DATABASE_URL: postgres.url,
      TEMPORAL_ADDRESS: temporal.address,
      POSTHORN_ENCRYPTION_KEYS: key,
    };
    const first = await diagnose(env);
    expect(first.failures).toBe(0);
    expect(first.about('Database')).toMatchObject({ status: 'ok' });
    expect(first.about('keeps closed workflows for 1 days')).toMatchObject({ status: 'warn' });
    expect(first.about('are of type Keyword')?.status).toBe('ok');
    expect(JSON.stringify(first.findings)).not.toContain(new URL(postgres.url).password);

    const ask = (...args: string[]) => runCommand(temporal.cli, [...args, '--address', temporal.address]);
    await ask('operator', 'namespace', 'update', '--namespace', 'default', '--retention', '31d');
    await ask('operator', 'search-attribute', 'remove', '--name', 'PosthornTenantId', '--yes');
    await ask('operator', 'search-attribute', 'create', '--name', 'PosthornTenantId', '--type', 'Int');
    const second = await diagnose(env);
    expect(second.about('keeps closed workflows for 31 days')?.status).toBe('ok');
    expect(second.about('PosthornTenantId is of type Int')?.status).toBe('FAIL');

    const third = await diagnose({ ...env, TEMPORAL_NAMESPACE: 'missing' });
    expect(third.about("Namespace 'missing' does not exist")?.todo).toContain('namespace create');
  });

  it('fails where neither answers, and never repeats a password', { timeout: 60_000 }, async () => {
    const [one = 0, two = 0] = await findFreePorts(2);
    const env = {
      ...(await freshMachine()),
      POSTHORN_DATABASE_URL: `postgres://posthorn:secret-word@127.0.0.1:${one}/posthorn`,
      TEMPORAL_ADDRESS: `127.0.0.1:${two}`,
    };
    const { failures, findings, about } = await diagnose(env);
    expect(failures).toBe(2);
    expect(about(`Database 127.0.0.1:${one}/posthorn`)?.status).toBe('FAIL');
    expect(about(`Temporal 127.0.0.1:${two}`)?.status).toBe('FAIL');
    expect(about('POSTHORN_ENCRYPTION_KEYS is not set')?.status).toBe('warn');
    expect(findings.map(formatFinding).join('\n')).not.toContain('secret-word');
  });

  it.each([
    ['20.18.3', 'FAIL'],
    ['18.20.0', 'FAIL'],
    ['20.19.0', 'ok'],
    ['24.0.0', 'ok'],
  ])('judges Node %s as %s', (version, status) => {
    expect(checkNode(version).status).toBe(status);
  });
});
