import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

type Reply = { readonly ready: unknown } | { readonly result: unknown } | { readonly error: string };

/** A helper process of the bench. It is asked one thing at a time over IPC, so that asking costs no request. */
export class Child {
  private constructor(
    private readonly process: ChildProcess,
    /** What it said when it was ready: a port. */
    readonly ready: unknown,
  ) {}

  /** `path` is relative to bench/. */
  static async start(path: string, args: readonly string[] = []): Promise<Child> {
    const child = fork(fileURLToPath(new URL(path, import.meta.url)), args);
    const reply = await Promise.race([
      once(child, 'message').then(([message]) => message as Reply),
      once(child, 'exit').then(([code]) => ({ error: `${path} ended with ${code}` })),
    ]);
    if (!('ready' in reply)) throw new Error('error' in reply ? reply.error : `${path} did not say that it is ready`);
    return new Child(child, reply.ready);
  }

  get pid(): number {
    return this.process.pid!;
  }

  async ask<Result>(command: object): Promise<Result> {
    this.process.send(command);
    const reply = await Promise.race([
      once(this.process, 'message').then(([message]) => message as Reply),
      once(this.process, 'exit').then(([code]) => ({ error: `a process of the bench ended with ${code}` })),
    ]);
    if ('error' in reply) throw new Error(reply.error);
    return (reply as { result: Result }).result;
  }

  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const exited = once(this.process, 'exit');
    if (this.process.connected) this.process.disconnect();
    const late = setTimeout(() => this.process.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(late);
  }
}

/** The child's side: answers each command once, and ends with its parent. */
export function serveParent<Command>(
  ready: unknown,
  answer: (command: Command) => unknown,
  end: () => Promise<void> = async () => undefined,
): void {
  process.on('message', (command: Command) => {
    Promise.resolve()
      .then(() => answer(command))
      .then(
        (result) => process.send?.({ result: result ?? null }),
        (error: unknown) =>
          process.send?.({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
      );
  });
  process.on('disconnect', () => void end().finally(() => process.exit(0)));
  // A terminal's Ctrl-C is the parent's, which ends us in order.
  process.on('SIGINT', () => undefined);
  process.send?.({ ready });
}
