import { findFreePorts } from '../../src/embedded/ports.js';
import { ApiClient, spawnPosthorn, until } from './posthorn.js';

type Entry = Parameters<typeof spawnPosthorn>[0];

/** A built process of Posthorn, in a process group of its own. */
export class PosthornProcess {
  private readonly child: ReturnType<typeof spawnPosthorn>;
  private readonly ended: Promise<number | null>;

  constructor(
    readonly entry: Entry,
    env: Record<string, string>,
  ) {
    // Worker processes say when they poll at this level.
    this.child = spawnPosthorn(entry, { ...env, POSTHORN_LOG_LEVEL: 'info' });
    this.ended = new Promise((resolve) => this.child.once('exit', (code) => resolve(code)));
  }

  get pid(): number {
    return this.child.pid!;
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  get output(): string {
    return this.child.output();
  }

  /** As a terminal would: the whole group gets it. */
  signal(signal: NodeJS.Signals): void {
    if (this.isRunning) process.kill(-this.pid, signal);
  }

  async kill9(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended;
  }

  /** The exit code; null after a kill. */
  async exit(timeoutMs = 45_000): Promise<number | null> {
    await until(`${this.entry} has ended`, async () => !this.isRunning, timeoutMs).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.output}`);
    });
    return this.ended;
  }

  async says(text: string, timeoutMs = 30_000): Promise<void> {
    await until(
      `${this.entry} says "${text}"`,
      async () => {
        if (this.output.includes(text)) return true;
        if (!this.isRunning) throw new Error(`it ended:\n${this.output}`);
        return false;
      },
      timeoutMs,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.output}`, { cause: error });
    });
  }
}

/** The processes of a test file; none outlives it. */
export class Processes {
  private readonly all: PosthornProcess[] = [];

  spawn(entry: Entry, env: Record<string, string>): PosthornProcess {
    const started = new PosthornProcess(entry, env);
    this.all.push(started);
    return started;
  }

  /** An API process that listens. */
  async api(env: Record<string, string>): Promise<PosthornProcess & { readonly api: ApiClient }> {
    const [port] = await findFreePorts(1);
    const started = this.spawn('main', {
      ...env,
      POSTHORN_HTTP_HOST: '127.0.0.1',
      POSTHORN_HTTP_PORT: String(port),
    });
    await started.says('listening');
    return Object.assign(started, { api: new ApiClient(`http://127.0.0.1:${port}`) });
  }

  /** A worker process that polls. */
  async worker(env: Record<string, string>): Promise<PosthornProcess> {
    const started = this.spawn('worker', env);
    await started.says('workers poll');
    return started;
  }

  async killAll(): Promise<void> {
    await Promise.all(this.all.map((one) => one.kill9()));
  }
}

export interface ListedDelivery {
  readonly id: string;
  readonly event_id: string;
  readonly status: string;
  readonly reason: string;
  readonly attempt_count: number;
}

/** All pages of the list. */
export async function allDeliveries(api: ApiClient, query: string): Promise<ListedDelivery[]> {
  const all: ListedDelivery[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page = await api.get(`/v1/webhook-deliveries?limit=250&${query}${cursor ? `&cursor=${cursor}` : ''}`);
    if (page.status !== 200) throw new Error(`no list: ${page.status} ${page.text}`);
    all.push(...(page.body.data as ListedDelivery[]));
    cursor = page.body.next_cursor as string | null;
  }
  return all;
}

/** Waits until all that the query lists, at least `count` deliveries, has succeeded; says what has not. */
export async function everythingSucceeds(
  api: ApiClient,
  query: string,
  count: number,
  timeoutMs = 60_000,
): Promise<ListedDelivery[]> {
  let all: ListedDelivery[] = [];
  await until(
    'everything is delivered',
    async () => {
      all = await allDeliveries(api, query);
      return all.length >= count && all.every(({ status }) => status === 'succeeded');
    },
    timeoutMs,
  ).catch((error: unknown) => {
    const open = all.filter(({ status }) => status !== 'succeeded');
    throw new Error(`${all.length} of ${count} deliveries exist, and these are open: ${JSON.stringify(open)}`, {
      cause: error,
    });
  });
  return all;
}
