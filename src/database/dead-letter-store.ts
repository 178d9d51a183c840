import type { DataSource } from 'typeorm';

/** Letters, seen from the endpoint's queue workflow. */
export class DeadLetterStore {
  constructor(private readonly db: DataSource) {}

  /** Marks all unannounced letters of the endpoint in one statement, so that each is announced once. */
  async announce(endpointId: string): Promise<{ announced: number; open: number }> {
    const [row] = await this.db.query<{ announced: number; open: number }[]>(
      `with told as (update dead_letters set announced_at = now() where endpoint_id = $1 and announced_at is null returning 1)
       select (select count(*)::int from told) as announced,
              (select count(*)::int from dead_letters where endpoint_id = $1 and resolved_at is null) as open`,
      [endpointId],
    );
    return row ?? { announced: 0, open: 0 };
  }
}
