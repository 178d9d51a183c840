import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { pause } from '../src/pause.js';
import { type BenchedPosthorn, inParallel, median, Receiver, startPosthorn } from './support.js';

const rounds = 5;
const perRound = 300;
const width = 32;
const target = 1;
const roundTimeoutMs = 120_000;

if (process.argv.includes('--help')) {
  process.stdout.write(
    `Usage: npm run bench:engine\n\nDeliveries a second of Posthorn, and of a bare workflow with one ordinary no-op activity, on one\n` +
      `embedded server in one run: ${rounds} interleaved rounds of ${perRound}, ${width} at a time. Exits 1 where the ratio is below ${target}.\n`,
  );
  process.exit(0);
}

Runtime.install({ shutdownSignals: [], logger: new DefaultLogger('ERROR') });
const receiver = await Receiver.start();
const posthorn = await startPosthorn({ POSTHORN_VERIFICATION_REQUIRED: 'off' });
const bare = await startBare(posthorn.temporalAddress);
try {
  await createEndpoint(posthorn);
  process.stderr.write('warming up\n');
  await posthornRound();
  await bareRound();
  const rates: { posthorn: number; bare: number }[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const rate = { posthorn: await posthornRound(), bare: await bareRound() };
    rates.push(rate);
    process.stderr.write(
      `round ${round} of ${rounds}: Posthorn ${rate.posthorn.toFixed(1)}/s, bare ${rate.bare.toFixed(1)}/s\n`,
    );
  }
  const ratios = rates.map((rate) => rate.posthorn / rate.bare);
  process.stdout.write(`${''.padEnd(44)} ${['median', 'least', 'most'].map((name) => name.padStart(8)).join('')}\n`);
  process.stdout.write(
    row(
      'Posthorn, deliveries/s',
      rates.map((rate) => rate.posthorn),
      1,
    ),
  );
  process.stdout.write(
    row(
      'bare workflow + ordinary no-op activity, /s',
      rates.map((rate) => rate.bare),
      1,
    ),
  );
  process.stdout.write(row('ratio', ratios, 2));
  process.exitCode = median(ratios) >= target ? 0 : 1;
  if (process.exitCode !== 0) process.stderr.write(`the ratio is below ${target}\n`);
} finally {
  await bare.stop();
  await posthorn.stop();
  receiver.stop();
}

/** From the first publish request to the last request at the receiver. */
async function posthornRound(): Promise<number> {
  const before = await receiver.count();
  const startedAt = performance.now();
  const body = JSON.stringify({ type: 'bench.delivered', data: { text: 'x'.repeat(900) } });
  await inParallel(perRound, width, async () => {
    const response = await fetch(`${posthorn.apiUrl}/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${posthorn.apiKey}`, 'content-type': 'application/json' },
      body,
    });
    if (response.status !== 202) throw new Error(`publish: ${response.status} ${await response.text()}`);
    await response.arrayBuffer();
  });
  await reached(async () => (await receiver.count()) - before >= perRound);
  return (perRound / (performance.now() - startedAt)) * 1_000;
}

/** From the first start to the last activity. */
async function bareRound(): Promise<number> {
  const before = bare.count();
  const startedAt = performance.now();
  await inParallel(perRound, width, () => bare.start());
  await reached(async () => bare.count() - before >= perRound);
  return (perRound / (performance.now() - startedAt)) * 1_000;
}

async function reached(done: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + roundTimeoutMs;
  while (!(await done())) {
    if (Date.now() > deadline) throw new Error(`a round took longer than ${roundTimeoutMs} ms`);
    await pause(5);
  }
}

async function createEndpoint({ apiUrl, apiKey }: BenchedPosthorn): Promise<void> {
  const response = await fetch(`${apiUrl}/v1/webhooks/subscriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url, events: ['bench.*'] }),
  });
  if (response.status !== 201) throw new Error(await response.text());
}

async function startBare(address: string) {
  const connection = await NativeConnection.connect({ address });
  let done = 0;
  const quiet = new DefaultLogger('ERROR');
  const worker = await Worker.create({
    connection,
    taskQueue: 'bench-bare',
    workflowBundle: await bundleWorkflowCode({
      workflowsPath: fileURLToPath(new URL('./bare.workflow.js', import.meta.url)),
      logger: quiet,
    }),
    activities: { noop: async () => void (done += 1) },
    maxConcurrentWorkflowTaskExecutions: 250,
    maxConcurrentActivityTaskExecutions: 200,
  });
  const running = worker.run();
  const client = new Client({ connection });
  let number = 0;
  return {
    count: () => done,
    start: () =>
      client.workflow.start('bare', { taskQueue: 'bench-bare', workflowId: `bare-${process.pid}-${(number += 1)}` }),
    async stop() {
      worker.shutdown();
      await running;
      await connection.close();
    },
  };
}

function row(name: string, values: readonly number[], digits: number): string {
  const figures = [median(values), Math.min(...values), Math.max(...values)];
  return `${name.padEnd(44)} ${figures.map((figure) => figure.toFixed(digits).padStart(8)).join('')}\n`;
}
