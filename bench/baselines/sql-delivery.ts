import { createHash } from 'node:crypto';
import { Pool as Postgres } from 'pg';
import { Pool } from 'undici';
import { eventText } from '../load/load.js';
import { hotConnectionOptions } from '../../src/database/hot-statements.js';
import { captureStatements } from './captured-statements.js';

/** What Posthorn asks of Postgres and of the receiver for one delivery, without Posthorn. */
export interface SqlDelivery {
  /** Answers the delivery's id once it is committed. */
  publish(sentUs: number, number: number): Promise<string>;
  /** Load, POST, record; `received` is called when the receiver has answered. */
  attempt(deliveryId: string, received: () => void): Promise<void>;
  close(): Promise<void>;
}

export async function deliverWithSql(databaseUrl: string, receiverUrl: string): Promise<SqlDelivery> {
  const postgres = new Postgres({ connectionString: databaseUrl, max: 20, options: hotConnectionOptions });
  const { origin, pathname: path } = new URL(receiverUrl);
  const receiver = new Pool(origin, { connections: 64 });
  const headers = { 'content-type': 'application/json' };
  const statements = await captureStatements();
  return {
    async publish(sentUs, number) {
      const body = eventText('bench.e0', sentUs, number);
      const data = body.slice(body.indexOf('"data":') + '"data":'.length, -1);
      const { deliveryId, queries } = statements.publish(data, createHash('sha256').update(body).digest());
      for (const query of queries) await postgres.query(query);
      return deliveryId;
    },
    async attempt(deliveryId, received) {
      const run = `run-${deliveryId}`;
      const load = statements.load(deliveryId, run);
      const { rows } = await postgres.query<{ data: string }>(load);
      const startedAt = new Date();
      const startedMs = performance.now();
      const { statusCode, body } = await receiver.request({
        method: 'POST',
        path,
        headers,
        body: `{"delivery_id":"${deliveryId}","type":"bench.e0","data":${rows[0]!.data}}`,
      });
      await body.dump();
      received();
      const record = statements.record(deliveryId, run, startedAt, performance.now() - startedMs, statusCode);
      await postgres.query(record);
    },
    async close() {
      await receiver.close();
      await postgres.end();
    },
  };
}
