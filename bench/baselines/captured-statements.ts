import { AttemptStore } from '../../src/database/attempt-store.js';
import type { Database } from '../../src/database/data-source.js';
import { EventStore } from '../../src/database/event-store.js';
import type { HotStatement } from '../../src/database/hot-statements.js';
import { idPrefixes } from '../../src/domain/ids.js';
import { newId } from '../../src/security/new-id.js';

export interface Query {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

export interface Statements {
  publish(data: string, bodyHash: Buffer): { readonly deliveryId: string; readonly queries: readonly Query[] };
  load(deliveryId: string, runId: string): Query;
  record(deliveryId: string, runId: string, startedAt: Date, durationMs: number, statusCode: number): Query;
}

const type = 'bench.e0';
const [event, delivery, run, attempt] = ['@event', '@delivery', '@run', '@attempt'];
const data = '@data';
const hash = Buffer.from('@hash');
const [startedAt, durationMs, statusCode] = [new Date(0), 987_654, 299];

/**
 * The statements that Posthorn sends for one delivery: its stores are run once, on a database that only listens, with marks where
 * the values will be. So they stay Posthorn's own, while nothing of its code runs in the comparison.
 */
export async function captureStatements(): Promise<Statements> {
  const published = await capture([[{ index: 0, createdAt: new Date(), decided: true, endpointId: null }]], (db) =>
    new EventStore(db, { unverifiedEvents: 'hold' }).publish([
      {
        id: event,
        tenantId: 'default',
        type,
        source: null,
        subject: null,
        apiVersion: null,
        data,
        createdAt: null,
        bodyHash: hash,
      },
    ]),
  );
  const loaded = await capture([[]], (db) =>
    new AttemptStore(db).load({ deliveryId: delivery, runId: run, sequence: 1 }),
  );
  const recorded = await capture([[]], (db) =>
    new AttemptStore(db).record({
      id: attempt,
      deliveryId: delivery,
      runId: run,
      sequence: 1,
      round: 1,
      startedAt,
      durationMs,
      statusCode,
      errorCode: null,
      errorMessage: null,
      responseHeaders: [['content-length', '0']],
      responseBody: Buffer.alloc(0),
      responseTruncated: false,
      remoteAddress: '127.0.0.1',
      resent: false,
      outcome: 'delivered',
      gone: false,
      refused: false,
      waitMs: 60_000,
      restMs: null,
      letterExpiryMs: 90 * 86_400_000,
      probeRestMs: 60_000,
    }),
  );
  const [load, record] = [only(loaded), only(recorded)];
  return {
    publish(dataText, bodyHash) {
      const deliveryId = newId(idPrefixes.delivery);
      const marks = new Map<unknown, unknown>([
        [event, newId(idPrefixes.event)],
        [data, dataText],
        [hash, bodyHash],
      ]);
      const put = (value: unknown): unknown =>
        typeof value === 'string' && value.startsWith(idPrefixes.delivery) ? deliveryId : (marks.get(value) ?? value);
      return { deliveryId, queries: published.map((query) => filled(query, put)) };
    },
    load: (deliveryId, runId) =>
      filled(load, (value) => (value === delivery ? deliveryId : value === run ? runId : value)),
    record(deliveryId, runId, at, tookMs, status) {
      const marks = new Map<unknown, unknown>([
        [delivery, deliveryId],
        [run, runId],
        [attempt, newId(idPrefixes.attempt)],
        [startedAt, at],
        [durationMs, Math.round(tookMs)],
        [statusCode, status],
      ]);
      return filled(record, (value) => marks.get(value) ?? value);
    },
  };
}

/** The query with values in place of its marks, which may stand in arrays. */
function filled({ name, text, values }: Query, put: (value: unknown) => unknown): Query {
  const into = (value: unknown): unknown => (Array.isArray(value) ? value.map(into) : put(value));
  return { name, text, values: values.map(into) };
}

/** Runs `work` on a database that answers with these rows, one answer after the other. */
async function capture(answers: readonly unknown[][], work: (db: Database) => Promise<unknown>): Promise<Query[]> {
  const heard: Query[] = [];
  const run = async ({ name, text }: HotStatement, values: unknown[]): Promise<unknown[]> => {
    heard.push({ name, text, values });
    return answers[heard.length - 1] ?? [];
  };
  await work({ hot: { run } } as unknown as Database);
  return heard;
}

function only(queries: readonly Query[]): Query {
  const [query, ...more] = queries;
  if (!query || more.length > 0)
    throw new Error('an attempt is one read and one write; the bench has to follow a change of that');
  return query;
}
