import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { Client as PgClient } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import type { ReconcileReport } from '../../activities/contracts/reconcile-activities.js';
import { scheduleIds } from '../../workflows/contracts/names.js';
import { createTestDatabase, makeTestDataDir, startTestDevServer } from '../support/engines.js';
import { type ApiClient, createNamespace, RecordingReceiver, testEnv, until } from '../support/posthorn.js';
import { allDeliveries, everythingSucceeds, Processes } from '../support/processes.js';
import { workflowEnds } from '../support/workflows.js';

const wipedNamespace = 'default';
const processes = new Processes();
const dataDir = makeTestDataDir();
let temporal: Awaited<ReturnType<typeof startTestDevServer>>;
let receiver: RecordingReceiver;
/** Paths that refuse for now. */
const down = new Set<string>();
/** Requests that were accepted, by delivery. */
const accepted = new Map<string, number>();

beforeAll(async () => {
  temporal = await startTestDevServer({ dataDir, namespace: wipedNamespace });
  receiver = await RecordingReceiver.start(({ path, deliveryId }, reply) => {
    if (down.has(path)) return void reply.writeHead(500).end();
    accepted.set(deliveryId, (accepted.get(deliveryId) ?? 0) + 1);
    reply.writeHead(200).end();
  });
});
// A worker of one drill would take the other's work.
afterEach(() => processes.killAll());
afterAll(async () => {
  await temporal.stop({ graceMs: 0 });
  await receiver.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

async function withTemporal<T>(namespace: string, ask: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address: temporal.address });
  try {
    return await ask(new Client({ connection, namespace }));
  } finally {
    await connection.close();
  }
}

async function publishMany(api: ApiClient, type: string, count: number): Promise<string[]> {
  const events = Array.from({ length: count }, (_, n) => ({ type, data: { n } }));
  const answer = await api.post('/v1/events/batch', { events });
  expect(answer.body.accepted).toBe(count);
  return answer.body.data.flatMap((item: { event: { deliveries: { id: string }[] } }) =>
    item.event.deliveries.map(({ id }) => id),
  );
}

/** All events from the beginning, or after a cursor: their ids, and the cursor to go on with. */
async function follow(api: ApiClient, from: string | null = null): Promise<{ ids: string[]; cursor: string | null }> {
  const ids: string[] = [];
  for (let cursor = from; ;) {
    const page = await api.get(`/v1/events?limit=250${cursor === null ? '' : `&after=${cursor}`}`);
    expect(page.status).toBe(200);
    ids.push(...page.body.data.map(({ id }: { id: string }) => id));
    if (page.body.next_cursor === null) return { ids, cursor };
    cursor = page.body.next_cursor as string;
  }
}

/** Nobody is connected to the database while `work` is done, as in a restore; processes try on meanwhile. */
async function withNobodyConnected(
  databaseUrl: string,
  work: (admin: PgClient, name: string) => Promise<void>,
): Promise<void> {
  const name = new URL(databaseUrl).pathname.slice(1);
  const admin = new PgClient({ connectionString: inject('postgresUrl') });
  await admin.connect();
  try {
    await admin.query(`alter database ${name} with allow_connections false`);
    await until('nobody is connected', async () => {
      await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
      const { rows } = await admin.query('select from pg_stat_activity where datname = $1', [name]);
      return rows.length === 0;
    });
    await work(admin, name);
    await admin.query(`alter database ${name} with allow_connections true`);
  } finally {
    await admin.end();
  }
}

describe('restore drills', () => {
  it("Temporal's store is wiped while 200 deliveries wait, and all are delivered once", async () => {
    const databaseUrl = await createTestDatabase(inject('postgresUrl'));
    const env = testEnv({ databaseUrl, temporalAddress: temporal.address, namespace: wipedNamespace });
    const { api } = await processes.api(env);
    const worker = await processes.worker(env);
    for (let n = 0; n < 10; n += 1) {
      down.add(`/wiped-${n}`);
      await api.createEndpoint(`${receiver.url}/wiped-${n}`, ['wiped.sent'], {
        retry_waits_ms: [20_000, 20_000, 20_000],
      });
    }
    const ids = await publishMany(api, 'wiped.sent', 20);
    expect(ids).toHaveLength(200);
    // Each endpoint is seen to be down after three failures; the rest of its deliveries wait for their turn.
    await until(
      'all wait',
      async () => {
        const all = await allDeliveries(api, 'type=wiped.sent');
        const tried = all.filter(({ attempt_count: attempts }) => attempts > 0);
        return (
          all.length === 200 &&
          tried.length >= 30 &&
          all.every(({ status }) => ['pending', 'retrying', 'held'].includes(status))
        );
      },
      60_000,
    );
    await temporal.stop({ graceMs: 0 });
    for (const file of ['temporal.db', 'temporal.db-wal', 'temporal.db-shm'])
      rmSync(join(dataDir, file), { force: true });
    down.clear();
    temporal = await startTestDevServer({ dataDir, port: temporal.port, namespace: wipedNamespace });
    await everythingSucceeds(api, 'type=wiped.sent', 200, 150_000);
    for (const id of ids) expect([id, accepted.get(id)]).toEqual([id, 1]);
    expect(worker.isRunning).toBe(true);
  });

  it('Postgres is restored to a minute ago under running processes: the feed goes on, and the report names what is lost', async () => {
    const databaseUrl = await createTestDatabase(inject('postgresUrl'));
    // Of its own, so that Temporal knows deliveries of this database only.
    const namespace = await createNamespace(temporal.address);
    const env = testEnv({ databaseUrl, temporalAddress: temporal.address, namespace });
    const apiProcess = await processes.api(env);
    const { api } = apiProcess;
    const worker = await processes.worker(env);
    down.clear();
    for (const name of ['kept', 'waiting', 'overtaken', 'lost', 'lost-waiting', 'after'])
      await api.createEndpoint(`${receiver.url}/${name}`, [`drill.${name}`], {
        retry_waits_ms: [15_000, 15_000, 15_000, 15_000],
      });
    for (const path of ['/waiting', '/overtaken', '/lost-waiting']) down.add(path);
    const [kept] = await publishMany(api, 'drill.kept', 1);
    const [waiting] = await publishMany(api, 'drill.waiting', 1);
    const [overtaken] = await publishMany(api, 'drill.overtaken', 1);
    const isIn =
      (id: string, ...statuses: string[]) =>
      async () =>
        statuses.includes((await api.delivery(id)).status);
    await until('one is delivered', isIn(kept!, 'succeeded'), 60_000);
    for (const id of [waiting!, overtaken!]) await until(`${id} waits`, isIn(id, 'retrying'), 60_000);
    const backedUp = await follow(api);

    await withNobodyConnected(databaseUrl, async (admin, name) => {
      await admin.query(`create database ${name}_backup template ${name}`);
    });
    await until('the API is back', async () => (await api.get('/readyz')).status === 200);

    down.delete('/overtaken');
    const overtake = await api.post(`/v1/webhook-deliveries/${overtaken}/redeliver`);
    expect(overtake.status).toBe(202);
    await until('one is delivered after the backup', isIn(overtaken!, 'succeeded'), 60_000);
    const lost = await publishMany(api, 'drill.lost', 30);
    for (const id of lost) await until(`${id} is delivered`, isIn(id, 'succeeded'), 60_000);
    const [lostWaiting] = await publishMany(api, 'drill.lost-waiting', 1);
    await until('a lost one waits', isIn(lostWaiting!, 'retrying'), 60_000);
    const beforeRestore = await follow(api, backedUp.cursor);
    expect(beforeRestore.ids).toHaveLength(31);

    await withNobodyConnected(databaseUrl, async (admin, name) => {
      await admin.query(`alter database ${name} rename to ${name}_gone`);
      await admin.query(`alter database ${name}_backup rename to ${name}`);
    });
    await until('the API is back', async () => (await api.get('/readyz')).status === 200);
    down.clear();

    // What was accepted before the backup is all there, and what comes now comes after every cursor, also those of lost events.
    expect((await follow(api)).ids).toEqual(backedUp.ids);
    expect((await api.delivery(lost[0]!)).status).toBe(404);
    const after = await publishMany(api, 'drill.after', 5);
    for (const id of after) await until(`${id} is delivered`, isIn(id, 'succeeded'), 60_000);
    const fresh = await follow(api, beforeRestore.cursor);
    expect(fresh.ids).toHaveLength(5);
    expect((await follow(api)).ids).toEqual([...backedUp.ids, ...fresh.ids]);

    // What waited goes on; what was delivered after the backup is delivered again, since nobody knows of it.
    for (const id of [waiting!, overtaken!]) await until(`${id} is delivered`, isIn(id, 'succeeded'), 90_000);
    expect(accepted.get(overtaken!)).toBe(2);
    expect(accepted.get(kept!)).toBe(1);

    // Temporal has worked on deliveries that nobody knows: those that wait end, and the report counts all of them.
    await withTemporal(namespace, async (client) => {
      await workflowEnds(client, lostWaiting!, 'FAILED', 60_000);
      const started = await client.workflow.start('reconcile', {
        workflowId: `${scheduleIds.reconcile}-drill`,
        taskQueue: 'posthorn-control',
        args: [],
      });
      const report = (await started.result()) as ReconcileReport;
      expect(report.gaps).toMatchObject({ workflow_without_delivery: 31 });
      expect(report.lost).toMatchObject({ count: 31 });
    });
    expect(accepted.get(lostWaiting!)).toBeUndefined();
    await until('/readyz tells of it', async () => (await api.get('/readyz')).body.reconciliation?.status === 'gaps');
    expect((await api.get('/readyz')).body.reconciliation).toMatchObject({ status: 'gaps', lost: { deliveries: 31 } });
    await worker.says('reconciled: something was missing');
    expect([apiProcess.isRunning, worker.isRunning]).toEqual([true, true]);
  });
});
