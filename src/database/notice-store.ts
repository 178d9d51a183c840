import { createHash } from 'node:crypto';
import type { DataSource, EntityManager } from 'typeorm';
import type { MailStatus, NoticeType } from '../domain/closed-lists.js';
import { idPrefixes } from '../domain/ids.js';
import { newId } from '../security/new-id.js';
import { healthGraceMs } from './grace.js';
import type { EventStore } from './event-store.js';
import { keyset, type Page, type PageRequest, toPage } from './page.js';

export interface NewNotice {
  readonly endpointId: string;
  readonly type: NoticeType;
  /** What tells this notice from an earlier one of its type, such as the time since when the endpoint fails. */
  readonly episode: string;
  /** What is worth knowing beside the endpoint itself. */
  readonly data: Readonly<Record<string, unknown>>;
  /** At least so long after the last mail of this type to this endpoint's owner: what comes sooner is no mail. */
  readonly mailRestMs?: number;
}

export interface NoticeRow {
  readonly id: string;
  readonly endpoint_id: string;
  readonly type: NoticeType;
  /** A JSON object. */
  readonly data: string;
  readonly created_at: Date;
  readonly mail_to: string | null;
  readonly mail_status: MailStatus;
  readonly mail_attempts: number;
  readonly mail_next_at: Date | null;
  readonly mail_sent_at: Date | null;
  readonly mail_error: string | null;
}

export interface NoticeFilter {
  readonly endpointId?: string | undefined;
  readonly type?: NoticeType | undefined;
}

/** A mail that is to be sent now. */
export interface MailToSend {
  readonly id: string;
  readonly to: string;
  readonly type: NoticeType;
  readonly createdAt: Date;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Waits between tries of one mail: 1 m, 2 m, 4 m … 6 h, for three days. */
const mailWaits = { firstMs: 60_000, mostMs: 6 * 3_600_000 };
const mailForDays = 3;

const columns = `id, endpoint_id, type, data, created_at, mail_to, mail_status, mail_attempts, mail_next_at, mail_sent_at, mail_error`;

/** What owners are told: one row, and with it the mail that is to be sent and the operational event. */
export class NoticeStore {
  constructor(
    private readonly db: DataSource,
    private readonly events: EventStore,
    private readonly options: { readonly mails: boolean },
  ) {}

  /** All of a notice, or, where it was created before, nothing; false then. Commits with whatever it tells of. */
  async create(tx: EntityManager, { endpointId, type, episode, data, mailRestMs = 0 }: NewNotice): Promise<boolean> {
    const id = newId(idPrefixes.notice);
    const [notice] = await tx.query<{ tenant_id: string; data: string }[]>(
      `with e as (
         select e.id, e.tenant_id, e.owner_email, e.description, e.status, e.status_reason,
                regexp_replace(e.url, '^[^:]*://([^/?#]*@)?([^/?#]*).*$', '\\2') as host,
                case when e.owner_email is null then 'the endpoint has no owner_email'
                     when not $6::boolean then 'mail is not configured'
                     when exists (select from notices n where n.endpoint_id = e.id and n.type = $3 and n.mail_to is not null
                                    and n.mail_status <> 'none' and n.created_at > now() - $7 * interval '1 ms')
                       then 'the owner had a mail of this kind a short while ago' end as no_mail
           from endpoints e where e.id = $2 and e.deleted_at is null
       ), n as (
         insert into notices (id, tenant_id, endpoint_id, type, episode, data, mail_to, mail_status, mail_next_at, mail_error)
         select $1, e.tenant_id, e.id, $3, $4,
                (jsonb_build_object('notice_id', $1::text, 'endpoint_id', e.id, 'host', e.host, 'description', e.description,
                                    'status', e.status, 'status_reason', e.status_reason) || $5::jsonb)::text,
                e.owner_email, case when e.no_mail is null then 'pending' else 'none' end,
                case when e.no_mail is null then now() end, e.no_mail
           from e
         on conflict (endpoint_id, type, episode) do nothing
         returning tenant_id, data
       )
       select tenant_id, data from n`,
      [id, endpointId, type, episode, JSON.stringify(data), this.options.mails, mailRestMs],
    );
    if (!notice) return false;
    await this.events.publish(
      [
        {
          id: newId(idPrefixes.event),
          tenantId: notice.tenant_id,
          type,
          source: null,
          subject: endpointId,
          apiVersion: null,
          data: notice.data,
          createdAt: null,
          bodyHash: createHash('sha256').update(notice.data).digest(),
          operational: true,
          exceptEndpointId: endpointId,
        },
      ],
      { tx },
    );
    return true;
  }

  /** For who isn't the endpoint's own workflow: that one is to look, since there may be a mail to send. */
  async createFromOutside(tx: EntityManager, notice: NewNotice): Promise<boolean> {
    if (!(await this.create(tx, notice))) return false;
    await tx.query(
      `update endpoints set health_version = health_version + 1,
              health_sweep_after = least(health_sweep_after, now() + interval '${healthGraceMs} ms')
        where id = $1`,
      [notice.endpointId],
    );
    return true;
  }

  async list(tenantId: string, filter: NoticeFilter, page: PageRequest): Promise<Page<NoticeRow>> {
    const values: unknown[] = [tenantId];
    const conditions = [
      ['endpoint_id', filter.endpointId],
      ['type', filter.type],
    ].flatMap(([column, value]) => (value === undefined ? [] : [`and ${column} = $${values.push(value)}`]));
    const keys = keyset('id', page, values.length + 1);
    const rows = await this.db.query<NoticeRow[]>(
      `select ${columns} from notices where tenant_id = $1 ${conditions.join(' ')} ${keys.where} ${keys.order}`,
      [...values, ...keys.values],
    );
    return toPage(rows, page);
  }

  /**
   * The endpoint's next mail that is due, or null. Its next try is planned with the claim, so that two processes don't send
   * it at once, and one that dies with it in hand leaves it to the next try.
   */
  async claimMail(endpointId: string): Promise<MailToSend | null> {
    const [row] = await this.db.query<
      { id: string; mail_to: string; type: NoticeType; created_at: Date; data: string }[]
    >(
      `with n as (
         update notices set mail_attempts = mail_attempts + 1,
                mail_next_at = now() + least(power(2, least(mail_attempts, 20)) * ${mailWaits.firstMs}, ${mailWaits.mostMs}) * interval '1 ms'
          where id = (select id from notices where endpoint_id = $1 and mail_status = 'pending'
                         and mail_next_at <= now() + interval '50 ms'
                       order by id limit 1 for update skip locked)
         returning id, mail_to, type, created_at, data)
       select * from n`,
      [endpointId],
    );
    if (!row) return null;
    const data = JSON.parse(row.data) as MailToSend['data'];
    return { id: row.id, to: row.mail_to, type: row.type, createdAt: row.created_at, data };
  }

  async mailSent(id: string): Promise<void> {
    await this.db.query(
      `update notices set mail_status = 'sent', mail_sent_at = now(), mail_next_at = null, mail_error = null where id = $1`,
      [id],
    );
  }

  /** It is tried again, unless its time is over. */
  async mailFailed(id: string, error: string): Promise<void> {
    const isOver = `mail_next_at > created_at + interval '${mailForDays} days'`;
    await this.db.query(
      `update notices set mail_error = $2, mail_status = case when ${isOver} then 'failed' else 'pending' end,
              mail_next_at = case when ${isOver} then null else mail_next_at end
        where id = $1 and mail_status = 'pending'`,
      [id, error.replaceAll('\u0000', '\uFFFD')],
    );
  }

  /** Nobody is there to send them any more. */
  async giveUpMails(endpointId: string): Promise<void> {
    await this.db.query(
      `update notices set mail_status = 'none', mail_next_at = null, mail_error = 'mail is not configured'
        where endpoint_id = $1 and mail_status = 'pending'`,
      [endpointId],
    );
  }
}
