#!/usr/bin/env node
/** `npm run test:newcomer`: plays a newcomer's first minutes. `npm start` in an empty data directory, the commands that it prints, `npm run demo`, Ctrl-C. */
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

if (process.argv.includes('--help')) {
  process.stdout.write(
    'Usage: npm run test:newcomer\nStarts everything on free ports, runs the printed commands and the demo, stops it again.\n',
  );
  process.exit(0);
}
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const startTimeoutMs = 240_000;
const stopTimeoutMs = 60_000;
const dataDir = mkdtempSync(join(tmpdir(), 'posthorn-newcomer-'));
// As root, Postgres runs as another user, who must get through.
chmodSync(dataDir, 0o711);
const [http, postgres, temporal, ui, receiver] = await freePorts(5);
const env = {
  ...process.env,
  POSTHORN_DATA_DIR: dataDir,
  POSTHORN_HTTP_PORT: http,
  POSTHORN_POSTGRES_PORT: postgres,
  POSTHORN_TEMPORAL_PORT: temporal,
  POSTHORN_TEMPORAL_UI_PORT: ui,
  POSTHORN_SAMPLE_RECEIVER_PORT: receiver,
};

const child = spawn('npm', ['start'], { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
const ended = new Promise((resolve) => child.on('close', (code) => resolve(code)));
let output = '';
for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
try {
  await seen('Posthorn runs.', startTimeoutMs);
  await seen('Ctrl-C stops everything.', 5_000);
  const commands = output.match(/^ {2}curl .*$/gm) ?? [];
  expect(commands.length === 2, 'npm start prints two curl commands');
  const published = shell(commands[0]);
  expect(/"deliveries":\[\{"id":"whd_/.test(published), `the first command publishes: ${published}`);
  await until('the second command shows the delivery as succeeded', () =>
    shell(commands[1]).includes('"status":"succeeded"'),
  );
  const byHand = output.match(/^ {2}ID=.*\n {2}.* workflow start .*$/m)?.[0];
  expect(byHand !== undefined, 'npm start prints the command that redelivers by hand');
  shell(byHand);
  await until('the redelivery by hand has opened round 2', () =>
    /"status":"succeeded".*"round":2/.test(shell(commands[1])),
  );
  process.stdout.write('✔ the printed commands work\n');
  execFileSync('npm', ['run', 'demo'], { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  signalAll('SIGINT');
  const code = await Promise.race([
    ended,
    new Promise((resolve) => setTimeout(() => resolve('still running'), stopTimeoutMs)),
  ]);
  // npm passes the signal on and then ends by it, too.
  expect(code === 0 || child.signalCode === 'SIGINT', `Ctrl-C ends it: ${code} ${child.signalCode}`);
  expect(output.includes('✔ Stopping'), 'Ctrl-C stops the engines in order');
  expect(readdirSync(join(dataDir, 'run')).length === 0, 'no child is left behind');
  process.stdout.write('✔ Ctrl-C stops everything\n');
} catch (error) {
  process.stderr.write(
    `${error instanceof Error ? error.message : String(error)}\n--- output of npm start ---\n${output.slice(-4_000)}\n`,
  );
  process.exitCode = 1;
} finally {
  if (child.exitCode === null && child.signalCode === null) {
    signalAll('SIGINT');
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, stopTimeoutMs))]);
    if (child.exitCode === null && child.signalCode === null) signalAll('SIGKILL');
  }
  rmSync(dataDir, { recursive: true, force: true });
}

/** To the whole process group, as Ctrl-C in a terminal. */
function signalAll(signal) {
  if (child.pid !== undefined) process.kill(-child.pid, signal);
}

function shell(command) {
  return execFileSync('sh', ['-c', command], { cwd: root, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

async function seen(text, timeoutMs) {
  await until(
    `npm start says '${text}'`,
    () => output.includes(text) || (child.exitCode !== null && fail(`npm start ended with ${child.exitCode}`)),
    timeoutMs,
  );
}

async function until(what, probe, timeoutMs = 20_000) {
  const deadline = Date.now() + timeoutMs;
  while (!probe()) {
    if (Date.now() > deadline) fail(`waited ${timeoutMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function expect(condition, what) {
  if (!condition) fail(`not so: ${what}`);
}

function fail(message) {
  throw new Error(message);
}

async function freePorts(count) {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise((resolve) => {
          const server = createServer();
          server.listen(0, '127.0.0.1', () => resolve(server));
        }),
    ),
  );
  const ports = servers.map((server) => String(server.address().port));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
