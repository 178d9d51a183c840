import { Pool, type PoolClient, type PoolConfig } from 'pg';
import { QueryFailedError } from 'typeorm';
import { NoConnectionError } from './database-errors.js';

/** A statement that runs for each delivery: it has a name, by which each connection keeps its plan. */
export interface HotStatement {
  readonly name: string;
  readonly text: string;
}

/** A plan for each statement, kept, and by index. */
export const hotConnectionOptions = '-c plan_cache_mode=force_generic_plan -c enable_seqscan=off';

/** Groups make one statement of many, so that few connections do. */
const connections = 6;

/** Plans are kept for this long at first, then for twice as long, and so on. */
const planAgeMs = { first: 500, most: 60_000 };

interface Plans {
  madeAt: number;
  keepForMs: number;
}

/**
 * The few statements that every delivery costs, on connections of their own. Planning them takes Postgres several times as long
 * as running them, so each connection keeps its plans. A plan that was made for ten rows may be a bad one for a million, where
 * Postgres hasn't counted the rows yet: so each of these statements finds its rows by key, these connections prefer an index to
 * any scan, and they plan anew now and then, soon after their start and rarely later.
 */
export class HotStatements {
  private readonly pool: Pool;
  private readonly plans = new WeakMap<PoolClient, Plans>();

  constructor(config: PoolConfig) {
    this.pool = new Pool({
      ...config,
      max: connections,
      options: `${config.options ?? ''} ${hotConnectionOptions}`,
    });
    // A broken connection is replaced, and its statement fails; without listeners, idle or at work, it would end the process.
    this.pool.on('error', () => undefined);
    this.pool.on('connect', (client) => void client.on('error', () => undefined));
  }

  /** @throws {NoConnectionError} @throws {QueryFailedError} like every statement that TypeORM runs. */
  async run<Row>({ name, text }: HotStatement, values: unknown[]): Promise<Row[]> {
    let client: PoolClient;
    try {
      client = await this.pool.connect();
    } catch (error) {
      throw new NoConnectionError(error);
    }
    try {
      if (this.arePlansOld(client)) await client.query('discard plans');
      const { rows } = await client.query({ name, text, values });
      client.release();
      return rows as Row[];
    } catch (error) {
      // What the server refuses has a code; without one, nobody knows what state the connection is in.
      client.release((error as { code?: unknown }).code === undefined);
      throw new QueryFailedError(text, values, error as Error);
    }
  }

  private arePlansOld(client: PoolClient): boolean {
    const now = performance.now();
    const plans = this.plans.get(client);
    if (plans && now - plans.madeAt < plans.keepForMs) return false;
    this.plans.set(client, {
      madeAt: now,
      keepForMs: plans ? Math.min(plans.keepForMs * 2, planAgeMs.most) : planAgeMs.first,
    });
    return plans !== undefined;
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}
