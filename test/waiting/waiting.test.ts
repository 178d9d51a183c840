import { randomBytes } from 'node:crypto';
import { Client as Postgres } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { cpuMsOf, memoryBytesOf } from '../../bench/measure/processes.js';
import { createLogger } from '../../src/telemetry/logger.js';
import { TemporalConnection } from '../../src/temporal/connection.js';
import { TemporalGateway } from '../../src/temporal/gateway.js';
import { idPrefixes } from '../../src/domain/ids.js';
import { newId } from '../../src/security/new-id.js';
import { createTestDatabase } from '../support/engines.js';
import { createNamespace, testEnv, until } from '../support/posthorn.js';
import { Processes } from '../support/processes.js';

/** WAITING_DELIVERIES makes a short trial of it. */
const deliveries = Number(process.env['WAITING_DELIVERIES'] ?? 20_000);
const idleMs = 20_000;
const startsAtOnce = 32;

/** What may differ: this much of a CPU, of the memory, and of the time to start, is the machine's noise. */
const tolerance = { cpuFactor: 1.25, cpuMs: 200, memoryFactor: 1.1, memoryMb: 15, startFactor: 1.25, startMs: 500 };

const processes = new Processes();
let empty: Record<string, string>;
let full: Record<string, string>;

beforeAll(async () => {
  empty = await makeEnv();
  full = await makeEnv();
});
afterAll(() => processes.killAll());

async function makeEnv(): Promise<Record<string, string>> {
  return testEnv({
    databaseUrl: await createTestDatabase(inject('postgresUrl')),
    temporalAddress: inject('temporalAddress'),
    namespace: await createNamespace(),
  });
}

interface Idle {
  readonly startMs: number;
  readonly cpuMs: number;
  readonly memoryMb: number;
}

describe(`${deliveries} deliveries that wait for their next attempt`, () => {
  it('cost as much memory and CPU time as none, and no time at the start', async () => {
    await seed(full);
    const before = [await measure(empty), await measure(full)];
    // Once more in the other order, so that what else the machine does is less likely to look like a difference.
    const after = [await measure(full), await measure(empty)].toReversed();
    const [none, many] = [0, 1].map((index) => leastOf(before[index]!, after[index]!));
    console.info(`with none: ${say(none!)}\nwith ${deliveries}: ${say(many!)}`);
    expect(many!.cpuMs).toBeLessThanOrEqual(none!.cpuMs * tolerance.cpuFactor + tolerance.cpuMs);
    expect(many!.memoryMb).toBeLessThanOrEqual(none!.memoryMb * tolerance.memoryFactor + tolerance.memoryMb);
    expect(many!.startMs).toBeLessThanOrEqual(none!.startMs * tolerance.startFactor + tolerance.startMs);
  });
});

const say = ({ startMs, cpuMs, memoryMb }: Idle): string =>
  `ready ${startMs.toFixed(0)} ms after the start, then ${cpuMs.toFixed(0)} ms of CPU in ${idleMs / 1_000} s, ${memoryMb.toFixed(0)} MB`;

const leastOf = (a: Idle, b: Idle): Idle => ({
  startMs: Math.min(a.startMs, b.startMs),
  cpuMs: Math.min(a.cpuMs, b.cpuMs),
  memoryMb: Math.min(a.memoryMb, b.memoryMb),
});

/** API and worker from their start to the end of an idle spell. */
async function measure(env: Record<string, string>): Promise<Idle> {
  const startedAt = performance.now();
  const [api, worker] = await Promise.all([processes.api(env), processes.worker(env)]);
  const startMs = performance.now() - startedAt;
  const pids = [api.pid, worker.pid];
  await settled(pids);
  const cpuBefore = cpuMsOf(pids);
  await new Promise((resolve) => setTimeout(resolve, idleMs));
  const idle = { startMs, cpuMs: cpuMsOf(pids) - cpuBefore, memoryMb: memoryBytesOf(pids) / 2 ** 20 };
  for (const each of [api, worker]) each.signal('SIGTERM');
  for (const each of [api, worker]) await each.exit();
  return idle;
}

/** What a start has to do is done: two seconds in which the processes take little CPU time. */
async function settled(pids: readonly number[]): Promise<void> {
  await until(
    'the processes are idle',
    async () => {
      const before = cpuMsOf(pids);
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return cpuMsOf(pids) - before < 300;
    },
    600_000,
  );
}

/**
 * Deliveries after their first failed attempt: their rows as that attempt leaves them, and for each its workflow, started as the sweeper
 * does it, which finds that its delivery is not due and sleeps. So many real failures would take the endpoint for down.
 */
async function seed(env: Record<string, string>): Promise<void> {
  const { api } = await processes.api(env);
  const worker = await processes.worker(env);
  const { id: endpointId } = await api.createEndpoint('http://127.0.0.1:9/hook', ['waits.long']);
  const ids = Array.from({ length: deliveries }, () => newId(idPrefixes.delivery));
  await insertRows(env['POSTHORN_DATABASE_URL']!, endpointId, ids);
  const log = createLogger('warn', 'stderr');
  const connection = new TemporalConnection(
    'plain',
    { address: env['TEMPORAL_ADDRESS']!, namespace: env['TEMPORAL_NAMESPACE']! },
    log,
  );
  await connection.connect();
  const gateway = new TemporalGateway(connection, log, { alertWindowMs: 60_000 });
  let next = 0;
  const saidAt = { time: Date.now() };
  await Promise.all(
    Array.from({ length: startsAtOnce }, async () => {
      for (let index = next++; index < ids.length; index = next++) {
        const id = ids[index]!;
        const start = { id, tenantId: 'default', endpointId, eventId: eventOf(id), type: 'waits.long' };
        await gateway.startDelivery(start, 'sweeper', 'first');
        if (Date.now() - saidAt.time > 10_000) {
          saidAt.time = Date.now();
          console.info(`${index} of ${ids.length} workflows started`);
        }
      }
    }),
  );
  const { client } = connection;
  const sleeping = async (id: string): Promise<boolean> => {
    const { raw } = await client!.workflow.getHandle(id).describe();
    // Started, its first task with the local activity, and the timer.
    return Number(raw.workflowExecutionInfo?.historyLength) >= 6 && !raw.pendingWorkflowTask;
  };
  await until(
    'the last ones sleep',
    async () => (await Promise.all(ids.slice(-50).map(sleeping))).every(Boolean),
    600_000,
  );
  await settled([worker.pid]);
  const { rows } = await query<{ count: string }>(
    env['POSTHORN_DATABASE_URL']!,
    `select count(*) from deliveries where status = 'retrying' and next_attempt_at > now() + interval '1 day'`,
  );
  expect(Number(rows[0]!.count)).toBe(deliveries);
  console.info(
    `what made them wait holds ${(memoryBytesOf([worker.pid]) / 2 ** 20).toFixed(0)} MB: a worker keeps some workflows at hand`,
  );
  await connection.close();
  await processes.killAll();
}

const eventOf = (deliveryId: string): string => `evt-${deliveryId}`;

async function insertRows(databaseUrl: string, endpointId: string, ids: readonly string[]): Promise<void> {
  const eventIds = ids.map(eventOf);
  const runs = ids.map(() => randomBytes(8).toString('hex'));
  const attemptIds = ids.map(() => newId(idPrefixes.attempt));
  await query(
    databaseUrl,
    `with v as (
       insert into events (tenant_id, id, type, data, created_at, body_hash)
       select 'default', id, 'waits.long', '{}', now(), sha256(id::bytea) from unnest($2::text[]) as n (id) returning 1
     ), d as (
       insert into deliveries (id, tenant_id, event_id, endpoint_id, type, status, published_status, reason, attempt_count, round_attempts,
                               last_status_code, last_error, next_attempt_at, sweep_after)
       select id, 'default', event_id, $3, 'waits.long', 'retrying', 'pending', 'attempt_failed', 1, 1, 500, 'http_status',
              now() + interval '2 days', now() + interval '2 days 10 seconds'
         from unnest($1::text[], $2::text[]) as n (id, event_id) returning 1
     )
     insert into attempts (id, delivery_id, number, round, run_id, sequence, started_at, duration_ms, status_code, error_code, outcome, endpoint_id)
     select id, delivery_id, 1, 1, run_id, 1, now(), 20, 500, 'http_status', 'failed', $3
       from unnest($4::text[], $1::text[], $5::text[]) as n (id, delivery_id, run_id)`,
    [ids, eventIds, endpointId, attemptIds, runs],
  );
}

async function query<Row extends object>(databaseUrl: string, text: string, values: unknown[] = []) {
  const client = new Postgres({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await client.query<Row>(text, values);
  } finally {
    await client.end();
  }
}
