import { Worker } from 'node:worker_threads';

export interface SandboxOptions {
  /** For one task. */
  readonly timeoutMs: number;
  /** Of what a conversion makes. */
  readonly maxOutputBytes: number;
}

export interface SchemaFault {
  readonly instancePath: string;
  readonly schemaPath: string;
  readonly message: string;
}

/** Both are JSON texts. */
export interface ToValidate {
  readonly schema: string;
  readonly data: string;
}

export interface SandboxStep {
  /** JSONata. */
  readonly expression: string;
  /** JSON text of what the result has to fit; null: anything. */
  readonly schema: string | null;
  /** The version that it leads to, for messages. */
  readonly to: string;
}

type Task =
  | { readonly kind: 'check'; readonly schema?: string; readonly expression?: string }
  | { readonly kind: 'validate'; readonly items: readonly ToValidate[] }
  | { readonly kind: 'convert'; readonly data: string; readonly steps: readonly SandboxStep[] };

/** What was to be run can't be, or took too long. The message is for whoever wrote it. */
export class SandboxRefusal extends Error {
  override readonly name = 'SandboxRefusal';
  constructor(
    message: string,
    readonly reason: 'refused' | 'too_slow',
  ) {
    super(message);
  }
}

interface Job {
  readonly task: Task;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  ready: boolean;
  job: Job | null;
  timer: NodeJS.Timeout | null;
}

const maxThreads = 2;
/** What took too long fails at once for so long: it must not hold up others again and again. */
const bannedMs = 10_000;
const mostBanned = 1_000;
/** JSONata ends itself by then; what doesn't, such as a regular expression, is ended with its thread. */
const graceMs = 50;
const startTimeoutMs = 30_000;
const workerFile = new URL('./sandbox-worker.mjs', import.meta.url);

/** Runs schemas and conversions that others wrote, in threads of their own with a hard time limit and bounded memory. */
export class Sandbox {
  private readonly threads: Thread[] = [];
  private readonly queue: Job[] = [];
  private readonly banned = new Map<string, number>();
  private closed = false;

  constructor(private readonly options: SandboxOptions) {}

  /** @throws {SandboxRefusal} when the schema or the expression can't be used. */
  async check(what: { readonly schema?: string; readonly expression?: string }): Promise<void> {
    await this.run({ kind: 'check', ...what });
  }

  /** The first faults of each, in order; none where it fits. @throws {SandboxRefusal} */
  async validate(items: readonly ToValidate[]): Promise<readonly (readonly SchemaFault[])[]> {
    return (await this.run({ kind: 'validate', items })) as (readonly SchemaFault[])[];
  }

  /** The data, as JSON text, after all steps. @throws {SandboxRefusal} */
  async convert(data: string, steps: readonly SandboxStep[]): Promise<string> {
    return (await this.run({ kind: 'convert', data, steps })) as string;
  }

  async close(): Promise<void> {
    this.closed = true;
    const gone = this.threads.splice(0);
    for (const job of [...this.queue.splice(0), ...gone.flatMap(({ job }) => job ?? [])]) {
      job.reject(new Error('the sandbox is closed'));
    }
    await Promise.all(gone.map((thread) => this.end(thread)));
  }

  private run(task: Task): Promise<unknown> {
    if (this.isBanned(task)) return Promise.reject(this.tooSlow());
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(new Error('the sandbox is closed'));
      this.queue.push({ task, resolve, reject });
      this.next();
    });
  }

  private next(): void {
    const [job] = this.queue;
    if (!job) return;
    const thread = this.threads.find((one) => one.ready && one.job === null);
    if (!thread) {
      if (this.threads.length < maxThreads && this.threads.every((one) => one.ready)) this.start();
      return;
    }
    this.queue.shift();
    if (this.isBanned(job.task)) {
      job.reject(this.tooSlow());
      return this.next();
    }
    thread.job = job;
    thread.worker.ref();
    thread.timer = setTimeout(() => this.expire(thread), this.options.timeoutMs + graceMs);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    thread.worker.postMessage({ id: 0, task: job.task });
    this.next();
  }

  private start(): void {
    const worker = new Worker(workerFile, {
      workerData: this.options,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
    });
    const thread: Thread = { worker, ready: false, job: null, timer: null };
    thread.timer = setTimeout(() => this.lose(thread, new Error('the sandbox did not start')), startTimeoutMs);
    thread.timer.unref();
    this.threads.push(thread);
    worker.on('message', (message: unknown) => this.hear(thread, message));
    worker.on('error', (error) => this.lose(thread, this.failure(error)));
    worker.on('exit', () => this.lose(thread, new Error('the sandbox ended')));
  }

  private hear(thread: Thread, message: unknown): void {
    if (thread.timer) clearTimeout(thread.timer);
    thread.timer = null;
    if (message === 'ready') {
      thread.ready = true;
      if (this.queue.length === 0) thread.worker.unref();
      return this.next();
    }
    const { job } = thread;
    thread.job = null;
    // Else an idle thread would keep the process alive.
    thread.worker.unref();
    const answer = message as { readonly value?: unknown; readonly refused?: string };
    if (answer.refused === undefined) job?.resolve(answer.value);
    else job?.reject(new SandboxRefusal(answer.refused, 'refused'));
    this.next();
  }

  private expire(thread: Thread): void {
    if (thread.job) this.ban(thread.job.task);
    this.lose(thread, this.tooSlow());
  }

  /** The thread is given up; its job gets the error, and those that wait get another thread. */
  private lose(thread: Thread, error: Error): void {
    const index = this.threads.indexOf(thread);
    if (index === -1) return;
    this.threads.splice(index, 1);
    void this.end(thread);
    thread.job?.reject(error);
    // A sandbox that can't start must not be tried for ever: who waits is told.
    if (!thread.ready) for (const job of this.queue.splice(0)) job.reject(error);
    this.next();
  }

  private async end(thread: Thread): Promise<void> {
    if (thread.timer) clearTimeout(thread.timer);
    await thread.worker.terminate();
  }

  private failure(error: unknown): Error {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === 'ERR_WORKER_OUT_OF_MEMORY') return new SandboxRefusal('it takes too much memory', 'refused');
    return error instanceof Error ? error : new Error(String(error));
  }

  private tooSlow(): SandboxRefusal {
    return new SandboxRefusal(`it takes longer than ${this.options.timeoutMs} ms`, 'too_slow');
  }

  private ban(task: Task): void {
    if (this.banned.size >= mostBanned) this.banned.clear();
    for (const text of textsOf(task)) this.banned.set(text, Date.now() + bannedMs);
  }

  private isBanned(task: Task): boolean {
    if (this.banned.size === 0) return false;
    return textsOf(task).some((text) => (this.banned.get(text) ?? 0) > Date.now());
  }
}

/** What others wrote of a task, apart from the data. */
function textsOf(task: Task): string[] {
  switch (task.kind) {
    case 'check':
      return [task.schema ?? '', task.expression ?? ''].filter((text) => text !== '');
    case 'validate':
      return [...new Set(task.items.map(({ schema }) => schema))];
    case 'convert':
      return task.steps.map(({ expression }) => expression);
  }
}
