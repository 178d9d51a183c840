import { createHmac, randomBytes } from 'node:crypto';
import { fastify } from 'fastify';
import { Pool as Postgres } from 'pg';
import { ulid } from 'ulid';
import { Pool } from 'undici';
import { serveParent } from '../child.js';
import { GroupCommit } from './group-commit.js';

/**
 * What a webhook sender costs without engine and framework: Fastify, `pg`, undici and an HMAC. Event and delivery are committed by one
 * statement, attempt and state by another, each for all that came within 2 ms; 202 after the commit, then the POST. It keeps its
 * deliveries in memory: a crash loses those that are under way, and nothing is ever retried.
 */
const [databaseUrl, receiverUrl] = process.argv.slice(2) as [string, string];
const postgres = new Postgres({ connectionString: databaseUrl, max: 10 });
await postgres.query(`
  create table events (id text primary key, type text not null, data text not null, created_at timestamptz not null default now());
  create table deliveries (id text primary key, event_id text not null references events, status text not null, attempts integer not null,
                           updated_at timestamptz not null default now());
  create table attempts (id text primary key, delivery_id text not null references deliveries, status_code integer not null,
                         started_at timestamptz not null, duration_ms integer not null);`);
const { origin, pathname } = new URL(receiverUrl);
const receiver = new Pool(origin, { connections: 64 });
const secret = randomBytes(32);

interface Delivery {
  readonly id: string;
  readonly eventId: string;
  readonly type: string;
  readonly data: string;
}
interface Attempt {
  readonly deliveryId: string;
  readonly statusCode: number;
  readonly startedAt: Date;
  readonly durationMs: number;
}

const published = new GroupCommit<Delivery>(async (rows) => {
  await postgres.query({
    name: 'publish',
    text: `with e as (insert into events (id, type, data) select * from unnest($1::text[], $2::text[], $3::text[]))
           insert into deliveries (id, event_id, status, attempts) select id, event_id, 'pending', 0 from unnest($4::text[], $1::text[]) as n (id, event_id)`,
    values: [rows.map((r) => r.eventId), rows.map((r) => r.type), rows.map((r) => r.data), rows.map((r) => r.id)],
  });
});
const recorded = new GroupCommit<Attempt>(async (rows) => {
  await postgres.query({
    name: 'record',
    text: `with a as (insert into attempts (id, delivery_id, status_code, started_at, duration_ms)
                      select * from unnest($1::text[], $2::text[], $3::int[], $4::timestamptz[], $5::int[]))
           update deliveries set status = 'succeeded', attempts = attempts + 1, updated_at = now() where id = any($2)`,
    values: [
      rows.map(() => ulid()),
      rows.map((r) => r.deliveryId),
      rows.map((r) => r.statusCode),
      rows.map((r) => r.startedAt),
      rows.map((r) => r.durationMs),
    ],
  });
});

async function deliver({ id, type, data }: Delivery): Promise<void> {
  const body = `{"delivery_id":"${id}","type":"${type}","data":${data}}`;
  const unixSeconds = Math.floor(Date.now() / 1_000);
  const signature = createHmac('sha256', secret).update(`${unixSeconds}.`).update(body).digest('hex');
  const startedAt = new Date();
  const answer = await receiver.request({
    method: 'POST',
    path: pathname,
    headers: { 'content-type': 'application/json', 'webhook-signature': `t=${unixSeconds},v1=${signature}` },
    body,
  });
  await answer.body.dump();
  const durationMs = Date.now() - startedAt.getTime();
  await recorded.add({ deliveryId: id, statusCode: answer.statusCode, startedAt, durationMs });
}

interface EventBody {
  readonly type: string;
  readonly data: unknown;
}

async function accept({ type, data }: EventBody): Promise<{ id: string; delivery: string }> {
  const delivery: Delivery = { id: ulid(), eventId: ulid(), type, data: JSON.stringify(data) };
  await published.add(delivery);
  deliver(delivery).catch((error: unknown) => {
    process.stderr.write(`minimal loop: ${String(error)}\n`);
    process.exit(1);
  });
  return { id: delivery.eventId, delivery: delivery.id };
}

const app = fastify({ bodyLimit: 8 * 1024 * 1024 });
app.post<{ Body: EventBody }>('/v1/events', async ({ body }, reply) => {
  reply.code(202);
  return accept(body);
});
app.post<{ Body: { events: EventBody[] } }>('/v1/events/batch', async ({ body }, reply) => {
  reply.code(202);
  return { data: await Promise.all(body.events.map(accept)) };
});
const address = await app.listen({ host: '127.0.0.1', port: 0 });

serveParent(
  address,
  () => null,
  async () => {
    await app.close();
    await receiver.close();
    await postgres.end();
  },
);
