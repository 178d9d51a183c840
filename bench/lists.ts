import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createDataSource, migrate } from '../src/database/data-source.js';
import type { DeliveryFilter } from '../src/database/delivery-list.js';
import { DeliveryStore } from '../src/database/delivery-store.js';
import { type LetterFilter, LetterStore } from '../src/database/letter-store.js';
import { type Cursor, decodeCursor } from '../src/database/page.js';
import { startEmbeddedPostgres } from '../src/embedded/embedded-postgres.js';
import { findFreePorts } from '../src/embedded/ports.js';
import { silentProgress } from '../src/embedded/progress.js';
import { type ListCall, measurePurge } from './lists-purge.js';
import { seedLists } from './lists-seed.js';

const { values: options } = parseArgs({
  options: { help: { type: 'boolean' }, deliveries: { type: 'string', default: '1000000' } },
});
const deliveries = Number(options.deliveries);
if (!Number.isSafeInteger(deliveries) || deliveries < 10_000) throw new Error('--deliveries: 10000 or more');
const calls = 200;
const warmUp = 20;
const limit = 50;
const publishesPerSecond = 10;

if (options.help) {
  process.stdout.write(
    `Usage: npm run bench:lists -- [--deliveries ${deliveries}]\n\nMilliseconds of each list's statements, ${limit} rows a page, and of a redelivery, at ${deliveries.toLocaleString('en')} deliveries on the\n` +
      `embedded Postgres: ${calls} calls each, one after the other, from pages all over the list where it has some.\n` +
      `Then the older half is purged while ${publishesPerSecond} events a second are published and all lists are read: p95 before and during.\n`,
  );
  process.exit(0);
}

const dataDir = mkdtempSync(join(tmpdir(), 'posthorn-bench-'));
chmodSync(dataDir, 0o711);
const [port] = await findFreePorts(1);
const postgres = await startEmbeddedPostgres({ dataDir, port: port!, progress: silentProgress });
const db = createDataSource({ url: postgres.url, poolSize: 2 });
try {
  await db.initialize();
  await migrate(db);
  const seeded = await seedLists(postgres.url, deliveries, (line) => process.stderr.write(`seeding: ${line}\n`));
  const { bigTenant: big, smallTenant: small, busyEndpoint, healthyEndpoint, smallEndpoint, eventId } = seeded;
  const middle = new Date((seeded.from.getTime() + seeded.to.getTime()) / 2);
  const range = { createdAfter: middle, createdBefore: new Date(middle.getTime() + 86_400_000) };
  const rows = new DeliveryStore(db);
  const letters = new LetterStore(db);

  process.stdout.write(`${''.padEnd(52)}${['p50', 'p95', 'most'].map((name) => name.padStart(8)).join('')}\n`);

  const ofDeliveries = (tenant: string, filter: DeliveryFilter) =>
    paging((cursor) => rows.list(tenant, filter, { limit, cursor }));
  const ofLetters = (tenant: string, filter: LetterFilter) =>
    paging((cursor) => letters.list(tenant, filter, { limit, cursor }));
  const deliveryLists: [string, string, DeliveryFilter][] = [
    ['all', big, {}],
    ['status=failed', big, { status: 'failed' }],
    ['reason=attempts_exhausted', big, { reason: 'attempts_exhausted' }],
    ['reason=endpoint_gone, rare', big, { reason: 'endpoint_gone' }],
    ['endpoint_id, of most', big, { endpointId: busyEndpoint }],
    ['endpoint_id, status=failed, rare', big, { endpointId: healthyEndpoint, status: 'failed' }],
    ['event_id', big, { eventId }],
    ['type', big, { type: 'type3.happened' }],
    ['type, rare', big, { type: 'rare.happened' }],
    ['http_status=503', big, { httpStatus: 503 }],
    ['a day', big, range],
    ['a day, status=failed', big, { status: 'failed', ...range }],
    ['all, small tenant', small, {}],
    ['status=failed, small tenant', small, { status: 'failed' }],
    ['endpoint_id, small tenant', small, { endpointId: smallEndpoint }],
  ];
  const letterLists: [string, string, LetterFilter][] = [
    ['all', big, {}],
    ['resolution=open', big, { resolution: 'open' }],
    ['endpoint_id, open', big, { endpointId: busyEndpoint, resolution: 'open' }],
    ['type', big, { type: 'type3.happened' }],
    ['reason=endpoint_gone, rare', big, { reason: 'endpoint_gone' }],
    ['http_status=503', big, { httpStatus: 503 }],
    ['a day', big, range],
    ['open, small tenant', small, { resolution: 'open' }],
  ];
  const lists: ListCall[] = [
    ...deliveryLists.map(([name, tenant, filter]) => [`deliveries: ${name}`, ofDeliveries(tenant, filter)] as const),
    ...letterLists.map(([name, tenant, filter]) => [`dead letters: ${name}`, ofLetters(tenant, filter)] as const),
  ];
  for (const [name, call] of lists) await measure(name, call);

  const failed = await db.query<{ id: string }[]>(
    `select id from deliveries where tenant_id = $1 and status = 'failed' order by hashtext(id) limit $2`,
    [big, 3 * (calls + warmUp)],
  );
  const each = (act: (id: string) => Promise<unknown>) => () => act(failed.pop()?.id ?? '');
  await measure(
    'attempts of a delivery',
    each((id) => rows.attempts(big, id, { limit, cursor: null })),
  );
  await measure(
    'timeline of a delivery',
    each((id) => rows.history(big, id)),
  );
  await measure(
    'redelivery, made durable',
    each((id) => rows.redeliver(big, id, { keyId: 'key_bench', reason: null })),
  );
  await measurePurge({
    databaseUrl: postgres.url,
    tenantId: big,
    lists,
    keepMs: Date.now() - middle.getTime(),
    publishesPerSecond,
    beforeMs: 30_000,
  });
} finally {
  await db.destroy();
  await postgres.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

/** Calls that follow the pages of a list, and begin again after the last. */
function paging(list: (cursor: Cursor | null) => Promise<{ nextCursor: string | null }>): () => Promise<void> {
  let cursor: Cursor | null = null;
  return async () => {
    const { nextCursor } = await list(cursor);
    cursor = nextCursor === null ? null : decodeCursor(nextCursor);
  };
}

async function measure(name: string, call: () => Promise<unknown>): Promise<void> {
  for (let n = 0; n < warmUp; n += 1) await call();
  const times: number[] = [];
  for (let n = 0; n < calls; n += 1) {
    const startedAt = performance.now();
    await call();
    times.push(performance.now() - startedAt);
  }
  times.sort((a, b) => a - b);
  const shown = [times[calls / 2]!, times[Math.floor(calls * 0.95)]!, times.at(-1)!];
  process.stdout.write(`${name.padEnd(52)}${shown.map((ms) => ms.toFixed(1).padStart(8)).join('')}\n`);
}
