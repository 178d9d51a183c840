import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ModuleKind, ScriptTarget, transpileModule } from 'typescript';

export const examplesDir = fileURLToPath(new URL('../../../examples/receivers/', import.meta.url));

export interface Language {
  readonly name: 'node' | 'python' | 'go';
  /** Why it can't run on this machine; null when it can. */
  readonly missing: string | null;
  /** Makes it ready in a directory of the test's own, and says how to run it. */
  readonly prepare: (dir: string) => readonly [command: string, ...args: string[]];
}

export const languages: readonly Language[] = [
  { name: 'node', missing: null, prepare: prepareNode },
  {
    name: 'python',
    missing: answers('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))'])
      ? null
      : 'python 3.9 is not installed',
    prepare: () => ['python3', '-B', join(examplesDir, 'python', 'receiver.py')],
  },
  { name: 'go', missing: answers('go', ['version']) ? null : 'go is not installed', prepare: prepareGo },
];

function answers(command: string, args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

/** The very sources, without their types: what `npm run build` makes of them. */
function prepareNode(dir: string): readonly [string, ...string[]] {
  const source = join(examplesDir, 'node');
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  for (const file of readdirSync(source).filter((name) => name.endsWith('.ts'))) {
    const { outputText } = transpileModule(readFileSync(join(source, file), 'utf8'), {
      compilerOptions: { module: ModuleKind.ESNext, target: ScriptTarget.ES2023, verbatimModuleSyntax: true },
    });
    writeFileSync(join(dir, file.replace(/\.ts$/, '.js')), outputText);
  }
  return [process.execPath, join(dir, 'main.js')];
}

function prepareGo(dir: string): readonly [string, ...string[]] {
  const program = join(dir, 'receiver');
  const { status, stderr } = spawnSync('go', ['build', '-o', program, '.'], {
    cwd: join(examplesDir, 'go'),
    env: { ...process.env, GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local', GOPROXY: 'off' },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`go build failed:\n${stderr}`);
  return [program];
}

/** One of the example receivers, as a process that listens on a port of its own. */
export class ReceiverProcess {
  readonly #dir = mkdtempSync(join(tmpdir(), 'receiver-'));
  readonly #command: readonly [string, ...string[]];
  #child: ChildProcess | undefined;
  #url = '';
  output = '';

  constructor({ name, prepare }: Language) {
    const dir = join(this.#dir, name);
    mkdirSync(dir);
    this.#command = prepare(dir);
  }

  /** The address to subscribe. */
  get url(): string {
    return this.#url;
  }

  async start(secrets: readonly string[]): Promise<void> {
    const [command, ...args] = this.#command;
    const env = { ...process.env, PORT: '0', HOST: '127.0.0.1', WEBHOOK_SECRET: secrets.join(',') };
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    this.#url = await new Promise<string>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        this.output += chunk.toString();
        const url = /^Listening on (http:\/\/127\.0\.0\.1:\d+\/hook)$/m.exec(this.output)?.[1];
        if (url) resolve(url);
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`it ended with ${code}:\n${this.output}`)));
    });
  }

  /** Runs it to its end. */
  run(args: readonly string[], env: Record<string, string>) {
    const [command, ...first] = this.#command;
    return spawnSync(command, [...first, ...args], {
      env: { ...process.env, PORT: '0', ...env },
      encoding: 'utf8',
      timeout: 20_000,
    });
  }

  /** Asks it to stop; answers its exit code. */
  async stop(): Promise<number | null> {
    const child = this.#child;
    const ended =
      !child || child.exitCode !== null
        ? (child?.exitCode ?? null)
        : await new Promise<number | null>((resolve) => {
            child.once('exit', (code) => resolve(code));
            child.kill('SIGTERM');
          });
    rmSync(this.#dir, { recursive: true, force: true });
    return ended;
  }
}
