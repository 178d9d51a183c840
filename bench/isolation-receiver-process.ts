import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Many endpoints in one process, one a path, each with its own behaviour; tells its parent what came when. */
export type Behaviour = 'ok' | 'hang' | 'slow' | 'down' | 'down at first';

export interface Arrival {
  readonly atMs: number;
  /** Since it was handed to the API, by the clock of this machine; answered with success or not. */
  readonly latencyMs: number;
  readonly deliveryId: string;
  readonly attempt: number;
  readonly ok: boolean;
}

export type Command =
  | { readonly kind: 'behave'; readonly path: string; readonly behaviour: Behaviour }
  | { readonly kind: 'take'; readonly path: string };

const behaviours = new Map<string, Behaviour>();
const arrivals = new Map<string, Arrival[]>();
const slowMs = 5_000;

const server = createServer((request, reply) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const path = request.url ?? '/';
    const behaviour = behaviours.get(path) ?? 'ok';
    const attempt = Number(request.headers['webhook-attempt'] ?? 1);
    const ok = behaviour === 'ok' || behaviour === 'slow' || (behaviour === 'down at first' && attempt > 1);
    const { data } = JSON.parse(Buffer.concat(chunks).toString()) as { data: { sent_ms?: number } };
    const atMs = Date.now();
    const list = arrivals.get(path) ?? [];
    arrivals.set(path, list);
    list.push({
      atMs,
      latencyMs: atMs - (data.sent_ms ?? atMs),
      deliveryId: String(request.headers['webhook-id']),
      attempt,
      ok,
    });
    answer(behaviour, ok, reply);
  });
});

function answer(behaviour: Behaviour, ok: boolean, reply: ServerResponse): void {
  if (behaviour === 'hang') return;
  if (behaviour === 'slow') {
    setTimeout(() => reply.writeHead(200).end(), slowMs);
    return;
  }
  reply.writeHead(ok ? 200 : 500).end();
}

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('message', (command: Command) => {
  if (command.kind === 'behave') behaviours.set(command.path, command.behaviour);
  const taken = command.kind === 'take' ? (arrivals.get(command.path) ?? []) : [];
  if (command.kind === 'take') arrivals.set(command.path, []);
  process.send?.({ taken });
});
process.on('disconnect', () => process.exit(0));
