import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { lastLines, runCommand, type CommandOptions } from '../../../src/embedded/run-command.js';
import type { Receiver } from './receiver.js';

const root = join(import.meta.dirname, '..', '..', '..');
const cache = join(root, 'node_modules', '.cache', 'posthorn', 'conformance');
const verifiers = join(import.meta.dirname, '..', 'verifiers');

interface Program {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

export async function startPythonReceiver(secrets: readonly string[]): Promise<Receiver> {
  return start(await preparePython(), secrets);
}

export async function startGoReceiver(secrets: readonly string[]): Promise<Receiver> {
  return start(await buildGo(), secrets);
}

/** Installs the pinned packages once, into an environment of their own. */
async function preparePython(): Promise<Program> {
  const requirements = join(verifiers, 'python', 'requirements.txt');
  const args = [join(verifiers, 'python', 'receiver.py')];
  // Named by what is in it, so that another pin gets another one.
  const pins = readFileSync(requirements, 'utf8')
    .trim()
    .replaceAll(/[^a-z0-9.]+/gi, '-');
  const home = join(cache, `python-${pins}`);
  const venv: Program = { file: join(home, 'venv', 'bin', 'python'), args };
  const target: Program = { file: 'python3', args, env: { ...process.env, PYTHONPATH: join(home, 'packages') } };
  if (await canImport(venv)) return venv;
  if (await canImport(target)) return target;

  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-input'];
  const made = await runCommand('python3', ['-m', 'venv', join(home, 'venv')], patient);
  if (made.notFound)
    throw new Error('The conformance suite needs Python 3 as python3 on PATH: https://www.python.org/');
  if (made.code === 0) {
    await demand('Installing the Python verifier failed', venv.file, [...pip, '-r', requirements]);
    return venv;
  }
  // Some systems leave ensurepip, and so venv, to another package.
  const packages = ['--target', join(home, 'packages'), '-r', requirements];
  await demand('Installing the Python verifier failed', target.file, [...pip, ...packages]);
  return target;
}

async function canImport({ file, env }: Program): Promise<boolean> {
  if (file.includes(cache) && !existsSync(file)) return false;
  const { code } = await runCommand(file, ['-c', 'import cryptography, standardwebhooks'], env ? { env } : {});
  return code === 0;
}

/** The toolchain's own cache makes this quick from the second time on. */
async function buildGo(): Promise<Program> {
  const found = await runCommand('go', ['version']);
  if (found.code !== 0)
    throw new Error(`The conformance suite needs Go 1.21 or newer as go on PATH (https://go.dev/dl/): ${found.output}`);
  const file = join(cache, 'go-receiver');
  mkdirSync(cache, { recursive: true });
  const args = ['build', '-C', join(verifiers, 'go'), '-mod=readonly', '-buildvcs=false', '-o', file, '.'];
  await demand('Building the Go verifier failed', 'go', args, { env: { ...process.env, GOTOOLCHAIN: 'local' } });
  return { file, args: [] };
}

const patient: CommandOptions = { timeoutMs: 90_000 };

async function demand(problem: string, file: string, args: readonly string[], options: CommandOptions = {}) {
  const { code, output } = await runCommand(file, args, { ...patient, ...options });
  if (code !== 0) throw new Error(`${problem}: ${lastLines(output)}`);
}

async function start({ file, args, env }: Program, secrets: readonly string[]): Promise<Receiver> {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'], ...(env ? { env } : {}) });
  const closed = once(child, 'close');
  child.stdin.write(`${JSON.stringify(secrets)}\n`);
  // Its input ends with this process, however that ends, and it ends with its input.
  const ended = closed.then(([code]) => {
    throw new Error(`${file} ended with ${String(code)} before it listened`);
  });
  const line = await Promise.race([once(createInterface(child.stdout), 'line'), ended]);
  ended.catch(() => undefined);
  return {
    port: Number(line[0]),
    stop: async () => {
      child.stdin.end();
      await closed;
    },
  };
}
