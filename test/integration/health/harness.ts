import { createEndpointCallActivities, createHealthActivities } from '../../../activities/endpoint-health.js';
import { createDeadLetterActivities } from '../../../activities/dead-letters.js';
import type { HealthPlan, HealthTask } from '../../../activities/contracts/endpoint-health-activities.js';
import type { ActivityDependencies } from '../../../activities/ports.js';
import type { CallReport } from '../../../src/contact/endpoint-caller.js';
import { EndpointHealthStore } from '../../../src/database/endpoint-health-store.js';
import type { NoticeRow } from '../../../src/database/notice-store.js';
import type { NoticeType } from '../../../src/domain/closed-lists.js';
import type { Mailer } from '../../../src/mail/mailer.js';
import { newId } from '../../../src/security/new-id.js';
import { Attempts, day } from '../attempts/harness.js';

const nothing = (): void => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

const back = (column: string): string => `${column} = ${column} - $2 * interval '1 ms'`;

export type Notice = Pick<NoticeRow, 'id' | 'type' | 'mail_status' | 'mail_error' | 'mail_attempts' | 'mail_to'> & {
  readonly episode: string;
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any;
};

/** The health activities with their real stores on a database of its own; time passes by moving the rows' times back. */
export class Health {
  /** What an endpoint says to a ping. */
  answers = false;
  mailer: Mailer | null = null;
  readonly letters: string[] = [];
  private autoEnable = true;

  private constructor(readonly base: Attempts) {}

  static async start(): Promise<Health> {
    return new Health(await Attempts.start());
  }

  get sql() {
    return this.base.sql.bind(this.base);
  }

  store(autoEnable = this.autoEnable): EndpointHealthStore {
    return new EndpointHealthStore(this.base.db, this.base.notices, {
      verificationExpiryMs: 3 * day,
      rules: { warnAfterMs: [day, 3 * day], disableAfterMs: 7 * day, expiryNoticeMs: 7 * day },
      autoEnable,
    });
  }

  activities(health = this.store()) {
    const probe = async (endpointId: string): Promise<CallReport | null> => {
      const target = await health.target(endpointId);
      if (!target?.probeDue) return null;
      const report: CallReport = {
        passed: this.answers,
        way: 'ping',
        sent: true,
        statusCode: this.answers ? 200 : 500,
        errorCode: this.answers ? null : 'http_status',
        errorMessage: null,
        durationMs: 1,
        body: Buffer.alloc(0),
        allowedRatePerMinute: null,
      };
      await health.recordProbe(endpointId, report);
      return report;
    };
    const { waiting, letters, notices } = this.base;
    const dependencies = {
      health,
      waiting,
      letters,
      notices,
      mailer: this.mailer,
      caller: { probe, verify: async () => null, pingPeriodically: async () => null },
      announcer: { letterAdded: async (id: string) => void this.letters.push(id), deliveriesClosed: nothing },
      log: silent,
    } as unknown as ActivityDependencies;
    return {
      ...createHealthActivities(dependencies),
      ...createEndpointCallActivities(dependencies),
      ...createDeadLetterActivities(dependencies),
    };
  }

  /** What the endpoint's workflow does until it has to wait: what was done, and the plan that is left. */
  async run(endpointId: string): Promise<{ done: HealthTask[]; plan: Extract<HealthPlan, { kind: 'plan' }> }> {
    const activities = this.activities();
    const done: HealthTask[] = [];
    for (let round = 0; round < 20; round++) {
      const plan = await activities.planHealth({ endpointId, dealtWith: null });
      if (plan.kind === 'deleted') throw new Error('the endpoint is deleted');
      if (plan.tasks.length === 0) return { done, plan };
      for (const task of plan.tasks) {
        await this.perform(task, endpointId, activities);
        done.push(task);
      }
    }
    throw new Error(`it never comes to rest: ${done.join(', ')}`);
  }

  async perform(task: HealthTask, endpointId: string, activities = this.activities()): Promise<void> {
    const input = { endpointId };
    switch (task) {
      case 'expire':
        return activities.expireEndpoint(input);
      case 'expire_verification':
        return activities.expireVerification(input);
      case 'disable':
        return activities.disableEndpoint(input);
      case 'warn':
        return activities.warnOwner(input);
      case 'tell_disabled':
        return activities.tellDisabled(input);
      case 'tell_refused':
        return activities.tellRefused(input);
      case 'tell_recovered':
        return activities.tellRecovered(input);
      case 'tell_expiring':
        return activities.tellExpiring(input);
      case 'tell_certificate_expiring':
        return activities.tellCertificateExpiring(input);
      case 'verify':
        return void (await activities.verifyEndpoint(input));
      case 'ping':
        return void (await activities.pingEndpoint(input));
      case 'probe':
        return void (await activities.probeEndpoint(input));
      case 'send_mail':
        return void (await activities.sendMail(input));
    }
  }

  /** An active endpoint, with an owner unless it is said otherwise. */
  async endpoint(columns: Record<string, unknown> = {}): Promise<string> {
    const id = await this.base.createEndpoint('https://hooks.example.com/in');
    await this.set(id, { owner_email: 'owner@example.com', ...columns });
    return id;
  }

  async set(id: string, columns: Record<string, unknown>): Promise<void> {
    const names = Object.keys(columns);
    await this.sql(
      `update endpoints set ${names.map((name, index) => `${name} = $${index + 2}`).join(', ')} where id = $1`,
      [id, ...Object.values(columns)],
    );
  }

  /** Time passes: all that was, was so much earlier. */
  async pass(id: string, ms: number): Promise<void> {
    // What names an episode stays together with its name.
    await this.sql(
      `update endpoints set ${['failing_since', 'refused_since', 'last_success_at', 'resumed_at', 'expires_at', 'status_changed_at'].map(back).join(', ')} where id = $1`,
      [id, ms],
    );
    await this.sql(
      `update endpoint_checks set ${['started_at', 'next_at', 'last_at'].map(back).join(', ')} where endpoint_id = $1`,
      [id, ms],
    );
    await this.sql(
      `update notices set ${['created_at', 'mail_next_at'].map(back).join(', ')},
              episode = case when episode ~ '^2' then
                to_char(split_part(episode, '/', 1)::timestamptz - $2 * interval '1 ms', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
                || substr(episode, 25) else episode end
        where endpoint_id = $1`,
      [id, ms],
    );
  }

  async notices(id: string, type?: NoticeType): Promise<Notice[]> {
    const rows = await this.sql<Notice & { data: string }>(
      `select * from notices where endpoint_id = $1 and ($2::text is null or type = $2) order by id`,
      [id, type ?? null],
    );
    return rows.map((row) => Object.assign(row, { data: JSON.parse(row.data) as unknown }));
  }

  async told(id: string): Promise<NoticeType[]> {
    return (await this.notices(id)).map(({ type }) => type);
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  state(id: string): Promise<any> {
    return this.base.endpoint(id);
  }

  /** An endpoint that wants to hear of others. */
  async listener(events: string[]): Promise<string> {
    const id = newId('we_');
    await this.base.endpoints.create({
      id,
      tenantId: 'default',
      url: 'https://ops.example.com/in',
      events,
      profile: 'default',
      sealedSecret: 'sealed',
    });
    return id;
  }

  stop(): Promise<void> {
    return this.base.stop();
  }
}
