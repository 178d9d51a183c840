import type { Database } from './data-source.js';
import { Group } from './group.js';

const forgottenAfterHours = 1;

/** Who makes first attempts without a workflow, and of which deliveries. */
export class LeaseStore {
  private readonly given: Group<{ readonly holder: string; readonly id: string }, void>;

  constructor(private readonly db: Database) {
    this.given = new Group((leases) => this.giveBackTogether(leases), { most: 500, atOnce: 1 });
  }

  /** Says that the holder lives; a new one is added. */
  async renew(holder: string): Promise<void> {
    await this.db.hot.run(renewStatement, [holder]);
  }

  /** The delivery is anybody's: its workflow's, or the sweeper's. */
  giveBack(holder: string, id: string): Promise<void> {
    return this.given.add({ holder, id });
  }

  /** Deliveries of the holder that should have moved by now. */
  async overdue(holder: string): Promise<string[]> {
    const rows = await this.db.hot.run<{ id: string }>(overdueStatement, [holder]);
    return rows.map(({ id }) => id);
  }

  /** The holder makes no more attempts. */
  async forget(holder: string): Promise<void> {
    await this.db.query('delete from lease_holders where id = $1', [holder]);
  }

  /** Those that have been dead for long. */
  async forgetDead(): Promise<void> {
    await this.db.query(`delete from lease_holders where seen_at < now() - interval '${forgottenAfterHours} h'`);
  }

  private async giveBackTogether(leases: readonly { readonly holder: string; readonly id: string }[]): Promise<void[]> {
    await this.db.hot.run(giveBackStatement, [leases.map(({ id }) => id), leases.map(({ holder }) => holder)]);
    return leases.map(() => undefined);
  }
}

const renewStatement = {
  name: 'renew_lease',
  text: `insert into lease_holders (id, seen_at) values ($1, clock_timestamp())
         on conflict (id) do update set seen_at = excluded.seen_at`,
};

const giveBackStatement = {
  name: 'give_back_leases',
  text: `update deliveries set lease_holder = null where id = any($1::text[]) and lease_holder = any($2::text[])`,
};

const overdueStatement = {
  name: 'overdue_leases',
  text: `select id from deliveries where sweep_after <= now() and lease_holder = $1 order by sweep_after limit 5000`,
};
