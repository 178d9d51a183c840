import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import {
  bundleWorkflowCode,
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
} from '@temporalio/worker';
import { serveParent } from '../child.js';
import type { Saturation, Steadiness } from '../load/load.js';
import { numberFrom, Progress, publishSteadily, saturate } from '../load/pacer.js';
import { nowUs } from '../measure/clock.js';
import { deliverWithSql, type SqlDelivery } from './sql-delivery.js';

/** `ordinary`: (a). `eager`: (b). `eager-sql`: (b'), which also publishes, posts and records. */
export type BareKind = 'ordinary' | 'eager' | 'eager-sql';

export interface BareSettings {
  readonly kind: BareKind;
  readonly temporalAddress: string;
  readonly namespace: string;
  /** For `eager-sql`. */
  readonly databaseUrl?: string;
  readonly receiverUrl?: string;
}

export type BareCommand =
  | { readonly kind: 'saturate'; readonly load: Saturation }
  | { readonly kind: 'steady'; readonly load: Steadiness }
  | { readonly kind: 'take' };

const settings = JSON.parse(process.argv[2]!) as BareSettings;
const quiet = new DefaultLogger('ERROR');
Runtime.install({
  shutdownSignals: [],
  logger: quiet,
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }), forward: {} } },
});
const taskQueue = `bench-${settings.kind}`;
const connection = await NativeConnection.connect({ address: settings.temporalAddress });
const client = new Client({ connection, namespace: settings.namespace });
const sql: SqlDelivery | null =
  settings.kind === 'eager-sql' ? await deliverWithSql(settings.databaseUrl!, settings.receiverUrl!) : null;
// The generator's numbers begin with 0.
numberFrom(4_000_000);

let done = 0;
let doneBefore = 0;
let progress = new Progress();
let atUs: number[] = [];
let latencyUs: number[] = [];
let lastIds: string[] = [];

function arrive(): void {
  done += 1;
  progress.reached(done - doneBefore);
}

const worker = await Worker.create({
  connection,
  namespace: settings.namespace,
  taskQueue,
  workflowBundle: await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./bare.workflow.js', import.meta.url)),
    logger: quiet,
  }),
  activities: {
    async step(sentUs: number, subject: string): Promise<void> {
      // With a request of its own, its receiver keeps the times.
      if (sql) return sql.attempt(subject, arrive);
      const arrivedUs = nowUs();
      atUs.push(arrivedUs);
      latencyUs.push(arrivedUs - sentUs);
      arrive();
    },
  },
  maxConcurrentWorkflowTaskExecutions: 250,
  maxConcurrentLocalActivityExecutions: 200,
  maxConcurrentActivityTaskExecutions: 200,
});
const running = worker.run();

async function publish(first: number): Promise<number> {
  const sentUs = nowUs();
  const workflowId = sql ? await sql.publish(sentUs, first) : `bench-${process.pid}-${first}`;
  await client.workflow.start(settings.kind === 'ordinary' ? 'bareOrdinary' : 'bareLocal', {
    taskQueue,
    workflowId,
    args: [sentUs, workflowId],
    requestEagerStart: settings.kind !== 'ordinary',
  });
  lastIds.push(workflowId);
  return 1;
}

async function drained(count: number): Promise<void> {
  const deadline = nowUs() + 60e6;
  while (nowUs() < deadline) {
    if (done >= count) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

serveParent(
  null,
  async (command: BareCommand) => {
    if (command.kind === 'take') {
      const taken = { arrivals: { atUs, latencyUs, repeated: 0 }, ids: lastIds.slice(-20) };
      [atUs, latencyUs, lastIds] = [[], [], []];
      return taken;
    }
    doneBefore = done;
    progress = new Progress();
    const published =
      command.kind === 'saturate'
        ? await saturate(command.load, publish, progress)
        : await publishSteadily(command.load, publish);
    await drained(doneBefore + published.accepted);
    return published;
  },
  async () => {
    worker.shutdown();
    await running;
    await sql?.close();
    await connection.close();
  },
);
