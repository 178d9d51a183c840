import { createServer, type AddressInfo, type Socket } from 'node:net';
import { serveParent } from '../child.js';
import { type Arrivals, readStamp } from '../load/load.js';
import { nowUs } from '../measure/clock.js';

export type ReceiverCommand = { readonly kind: 'count' } | { readonly kind: 'take' };

/**
 * Answers every request 200 at once and keeps when which event came. It reads as much of HTTP/1.1 as the senders under test speak
 * (keep-alive, Content-Length), since a whole server would take a good part of the machine that is measured.
 */
const answer = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
const headEnd = Buffer.from('\r\n\r\n');
/** The stamp is found in so much of a body. */
const readBytes = 700;

let count = 0;
let atUs: number[] = [];
let latencyUs: number[] = [];
let repeated = 0;
let seen = new Uint8Array(1 << 20);

/** Who follows the count hears of it when it has changed, this often at most: polling would cost as much as a slow sender's work. */
const newsEveryMs = 10;
const followers = new Set<Socket>();
let newsDue: NodeJS.Timeout | null = null;

function follow(socket: Socket): void {
  followers.add(socket);
  socket.once('close', () => followers.delete(socket));
  socket.write(`${count}\n`);
}

function tellFollowers(): void {
  if (followers.size === 0) return;
  newsDue ??= setTimeout(() => {
    newsDue = null;
    for (const socket of followers) socket.write(`${count}\n`);
  }, newsEveryMs);
}

function record(body: string): void {
  const stamp = readStamp(body);
  if (!stamp) return;
  if (stamp.number >= seen.length) {
    const wider = new Uint8Array(Math.max(seen.length * 2, stamp.number + 1));
    wider.set(seen);
    seen = wider;
  }
  if (seen[stamp.number] === 1) {
    repeated += 1;
    return;
  }
  seen[stamp.number] = 1;
  count += 1;
  tellFollowers();
  const arrivedUs = nowUs();
  atUs.push(arrivedUs);
  latencyUs.push(arrivedUs - stamp.sentUs);
}

function serve(socket: Socket): void {
  let pending: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    for (;;) {
      const end = pending.indexOf(headEnd);
      if (end < 0) return;
      const head = pending.toString('latin1', 0, end);
      const bodyStart = end + headEnd.length;
      const bodyEnd = bodyStart + contentLength(head);
      if (pending.length < bodyEnd) return;
      if (head.startsWith('GET /count')) {
        follow(socket);
      } else {
        record(pending.toString('latin1', bodyStart, Math.min(bodyEnd, bodyStart + readBytes)));
        socket.write(answer);
      }
      pending = pending.subarray(bodyEnd);
    }
  });
}

function contentLength(head: string): number {
  if (/\r\ntransfer-encoding:/i.test(head)) throw new Error('the receiver of the bench reads no chunked bodies');
  return Number(/\r\ncontent-length: *([0-9]+)/i.exec(head)?.[1] ?? 0);
}

const server = createServer(serve);
server.listen(0, '127.0.0.1', () => {
  serveParent((server.address() as AddressInfo).port, (command: ReceiverCommand) => {
    if (command.kind === 'count') return count;
    const taken: Arrivals = { atUs, latencyUs, repeated };
    [atUs, latencyUs, repeated] = [[], [], 0];
    return taken;
  });
});
