import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A receiver in a process of its own: answers 200 at once, and tells its parent how many requests it has had. */
let requests = 0;
const server = createServer((request, reply) => {
  request.resume();
  request.on('end', () => {
    requests += 1;
    reply.writeHead(200).end();
  });
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('message', () => process.send?.({ requests }));
process.on('disconnect', () => process.exit(0));
