import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

type Reply = { readonly ready: unknown } | { readonly result: unknown } | { readonly error: string };

/** Of all that is measured, as in the start scripts of package.json. */
export const nodeOptions: readonly string[] = ['--max-semi-space-size=32'];

/** A helper process of the bench. It is asked over IPC, so that asking costs no request. */
export class Child {
  private readonly waiting: { resolve: (reply: Reply) => void }[] = [];
  private ended: string | null = null;
  /** What it said when it was ready: a port. */
  ready: unknown = null;

  private constructor(private readonly process: ChildProcess) {
    // It works on one command after the other, so its replies come in order.
    process.on('message', (reply: Reply) => this.waiting.shift()?.resolve(reply));
    process.once('exit', (code, signal) => {
      this.ended = `a process of the bench ended with ${code ?? signal}`;
      for (const { resolve } of this.waiting.splice(0)) resolve({ error: this.ended });
    });
  }

  /** `path` is relative to bench/. */
  static async start(path: string, args: readonly string[] = []): Promise<Child> {
    const child = new Child(fork(fileURLToPath(new URL(path, import.meta.url)), args, { execArgv: [...nodeOptions] }));
    const reply = await child.reply();
    if (!('ready' in reply))
      throw new Error(`${path}: ${'error' in reply ? reply.error : 'did not say that it is ready'}`);
    child.ready = reply.ready;
    return child;
  }

  get pid(): number {
    return this.process.pid!;
  }

  async ask<Result>(command: object): Promise<Result> {
    const replied = this.reply();
    if (this.ended === null) this.process.send(command);
    const reply = await replied;
    if ('error' in reply) throw new Error(reply.error);
    return (reply as { result: Result }).result;
  }

  async stop(): Promise<void> {
    if (this.ended !== null) return;
    const exited = once(this.process, 'exit');
    if (this.process.connected) this.process.disconnect();
    const late = setTimeout(() => this.process.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(late);
  }

  private reply(): Promise<Reply> {
    if (this.ended !== null) return Promise.resolve({ error: this.ended });
    return new Promise((resolve) => this.waiting.push({ resolve }));
  }
}

/** The child's side: answers each command once, and ends with its parent. */
export function serveParent(
  ready: unknown,
  answer: (command: never) => unknown,
  end: () => Promise<void> = async () => undefined,
): void {
  let last: Promise<unknown> = Promise.resolve();
  process.on('message', (command: unknown) => {
    last = last
      .then(() => answer(command as never))
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
