import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import './provided.js';

/** What scripts/production-server.mjs has started. */
export interface ProductionServer {
  readonly postgresUrl: string;
  readonly temporalAddress: string;
  readonly temporalHealthUrl: string;
  /** Holds the server's process number; killed, it is started again 5 s later under another one. */
  readonly temporalPidFile: string;
  /** Created as docker-compose.yml creates it. */
  readonly namespace: string;
  /** The Temporal CLI's path. */
  readonly cli: string;
  /** Where a test leaves the numbers of its processes, so that none outlives the run. */
  readonly processDir: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    productionServer: ProductionServer;
  }
}

export default function setup({ provide }: TestProject): void {
  const file = process.env['PRODUCTION_SERVER_STATE'];
  if (!file) throw new Error('These tests need servers: run `npm run test:production-server`');
  const server = JSON.parse(readFileSync(file, 'utf8')) as ProductionServer;
  provide('productionServer', server);
  // For test/e2e, which runs here too.
  provide('postgresUrl', server.postgresUrl);
  provide('temporalAddress', server.temporalAddress);
  provide('workflowBundle', fileURLToPath(new URL('../../dist/workflow-bundle.js', import.meta.url)));
}
