import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, createWriteStream, mkdtempSync, readFileSync, rmSync, type WriteStream } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DemoError } from '../demo/posthorn-client.js';

const startTimeoutMs = 240_000;
const stopTimeoutMs = 60_000;

/** A Posthorn of this demo's own: everything in one process, in a data directory and on ports that nobody else uses. */
export class PosthornProcess {
  readonly #ended: Promise<number | null>;

  private constructor(
    private readonly child: ChildProcess,
    private readonly dataDir: string,
    private readonly output: WriteStream,
    readonly baseUrl: string,
    readonly webUiUrl: string,
  ) {
    this.#ended = new Promise((resolve) => child.once('close', (code) => resolve(code)));
  }

  static async start(settings: Readonly<Record<string, string>>, signal: AbortSignal): Promise<PosthornProcess> {
    const dataDir = mkdtempSync(join(tmpdir(), 'posthorn-incident-'));
    // As root, Postgres runs as another user, who must get through.
    chmodSync(dataDir, 0o711);
    const [http, postgres, temporal, ui] = (await freePorts(4)) as [string, string, string, string];
    const child = spawn(process.execPath, [fileURLToPath(new URL('../../src/standalone.js', import.meta.url))], {
      env: {
        ...process.env,
        POSTHORN_DATA_DIR: dataDir,
        POSTHORN_HTTP_PORT: http,
        POSTHORN_POSTGRES_PORT: postgres,
        POSTHORN_TEMPORAL_PORT: temporal,
        POSTHORN_TEMPORAL_UI_PORT: ui,
        POSTHORN_SAMPLE_RECEIVER: 'off',
        ...settings,
      },
      // Ctrl-C is for the demo, which stops this one when it has finished what it does.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = createWriteStream(join(dataDir, 'output.log'));
    child.stdout.pipe(output, { end: false });
    child.stderr.pipe(output, { end: false });
    const posthorn = new PosthornProcess(child, dataDir, output, `http://127.0.0.1:${http}`, `http://127.0.0.1:${ui}`);
    try {
      await posthorn.#untilReady(signal);
      return posthorn;
    } catch (error) {
      const said = posthorn.#lastWords();
      await posthorn.stop();
      throw new DemoError(`${error instanceof Error ? error.message : String(error)}\n${said}`, { cause: error });
    }
  }

  get apiKey(): string {
    return readFileSync(join(this.dataDir, 'api-key'), 'utf8').trim();
  }

  /** As Ctrl-C does; true when it ended cleanly. Its data directory goes with it. */
  async stop(): Promise<boolean> {
    this.child.kill('SIGINT');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), stopTimeoutMs);
    const code = await this.#ended;
    clearTimeout(timer);
    await new Promise<void>((resolve) => this.output.end(resolve));
    rmSync(this.dataDir, { recursive: true, force: true });
    return code === 0;
  }

  async #untilReady(signal: AbortSignal): Promise<void> {
    const deadline = performance.now() + startTimeoutMs;
    let isOver = false;
    void this.#ended.then(() => (isOver = true));
    while (!(await this.#isReady())) {
      if (signal.aborted) throw new DemoError('interrupted');
      if (isOver) throw new DemoError('Posthorn ended while it started; it said:');
      if (performance.now() > deadline)
        throw new DemoError(`Posthorn did not start in ${startTimeoutMs / 1_000} s; it said:`);
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }

  async #isReady(): Promise<boolean> {
    try {
      const answer = await fetch(`${this.baseUrl}/readyz`);
      return answer.ok && ((await answer.json()) as { temporal?: string }).temporal !== 'degraded';
    } catch {
      return false;
    }
  }

  #lastWords(): string {
    return readFileSync(join(this.dataDir, 'output.log'), 'utf8').slice(-4_000);
  }
}

/** Ports that are free just now; all are taken before the first is given back, so that they differ. */
async function freePorts(count: number): Promise<string[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => String((server.address() as AddressInfo).port));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
