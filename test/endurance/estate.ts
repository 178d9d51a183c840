import { rmSync } from 'node:fs';
import { makeTestDataDir, startTestDevServer, startTestPostgres } from '../support/engines.js';
import { type ApiClient, createNamespace, testEnv } from '../support/posthorn.js';
import { type PosthornProcess, Processes } from '../support/processes.js';

export const parts = ['worker', 'api', 'temporal', 'postgres'] as const;
export type Part = (typeof parts)[number];

export type Lane = 'default' | 'express';

export interface Kill {
  readonly part: Part;
  readonly killedAt: number;
  /** When the part was there again: it listens, polls or answers. */
  backAt: number | null;
}

/** Everything that a production has, each in a process of its own, to be killed and started again on the same data. */
export class Estate {
  readonly kills: Kill[] = [];
  private readonly processes = new Processes();
  private env: Record<string, string> = {};
  private worker!: PosthornProcess;
  private api!: PosthornProcess & { readonly api: ApiClient };

  private constructor(
    private readonly dataDir: string,
    private postgres: Awaited<ReturnType<typeof startTestPostgres>>,
    private temporal: Awaited<ReturnType<typeof startTestDevServer>>,
  ) {}

  static async start(lane: Lane, extra: Record<string, string> = {}): Promise<Estate> {
    const dataDir = makeTestDataDir('posthorn-endurance-');
    const postgres = await startTestPostgres({ durable: true, dataDir });
    const estate = new Estate(dataDir, postgres, await startTestDevServer({ dataDir }));
    estate.env = testEnv({
      databaseUrl: postgres.url,
      temporalAddress: estate.temporal.address,
      namespace: await createNamespace(estate.temporal.address),
      extra: { ...(lane === 'express' ? { POSTHORN_DELIVERY_FIRST_ATTEMPT: 'express' } : {}), ...extra },
    });
    estate.api = await estate.processes.api(estate.env);
    estate.worker = await estate.processes.worker(estate.env);
    return estate;
  }

  /** Of the API process that runs now. */
  get client(): ApiClient {
    return this.api.api;
  }

  /** kill -9, of the whole part at once. */
  async kill(part: Part): Promise<Kill> {
    switch (part) {
      case 'worker':
        await this.worker.kill9();
        break;
      case 'api':
        await this.api.kill9();
        break;
      case 'temporal':
        await this.temporal.stop({ graceMs: 0 });
        break;
      case 'postgres':
        await this.postgres.stop({ graceMs: 0 });
        break;
    }
    const kill: Kill = { part, killedAt: Date.now(), backAt: null };
    this.kills.push(kill);
    return kill;
  }

  async restart(kill: Kill): Promise<void> {
    const { dataDir } = this;
    switch (kill.part) {
      case 'worker':
        this.worker = await this.processes.worker(this.env);
        break;
      case 'api':
        this.api = await this.processes.api(this.env);
        break;
      case 'temporal':
        this.temporal = await startTestDevServer({ dataDir, port: this.temporal.port });
        break;
      case 'postgres':
        this.postgres = await startTestPostgres({ durable: true, dataDir, port: this.postgres.port });
        break;
    }
    kill.backAt = Date.now();
  }

  async stop(): Promise<void> {
    await this.processes.killAll();
    await this.temporal.stop({ graceMs: 0 });
    await this.postgres.stop({ graceMs: 0 });
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}
