import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from './logger.js';
import type { MetricsPage } from './metrics-page.js';

export interface MetricsServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** `/metrics` of a process that has no API. */
export async function startMetricsServer(
  page: Pick<MetricsPage, 'text' | 'contentType'>,
  { host, port, log }: { readonly host: string; readonly port: number; readonly log: Logger },
): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0];
    if (path !== '/metrics' || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(path === '/metrics' ? 405 : 404).end();
      return;
    }
    page.text().then(
      (text) => response.writeHead(200, { 'Content-Type': page.contentType }).end(text),
      (error: unknown) => {
        log.warn({ err: error }, 'metrics could not be told');
        response.writeHead(500).end();
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
