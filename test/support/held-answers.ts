import type { ServerResponse } from 'node:http';
import { type Answerer, type ReceivedRequest, until } from './posthorn.js';

/** Requests that wait for the test to say how they are answered. */
export class HeldAnswers {
  private readonly held: { readonly request: ReceivedRequest; readonly reply: ServerResponse }[] = [];

  readonly answer: Answerer = (request, reply) => void this.held.push({ request, reply });

  get count(): number {
    return this.held.length;
  }

  async arrived(count = 1, timeoutMs = 20_000): Promise<void> {
    await until(`${count} requests are in flight`, async () => this.held.length >= count, timeoutMs);
  }

  /** Answers all that wait. */
  release(status = 200): void {
    this.releaseEach(() => status);
  }

  releaseEach(statusOf: (request: ReceivedRequest) => number): void {
    for (const { request, reply } of this.held.splice(0)) reply.writeHead(statusOf(request)).end();
  }
}
