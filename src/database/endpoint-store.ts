import type { DataSource, EntityManager } from 'typeorm';
import type { EndpointStatus } from '../domain/closed-lists.js';
import { eventFilterToLike } from '../domain/event-type.js';
import { idPrefixes } from '../domain/ids.js';
import type { EnvelopeName, PayloadName, SignatureName, VerificationWay } from '../domain/profiles.js';
import { newId } from '../security/new-id.js';
import { keyset, type Page, type PageRequest, toPage } from './page.js';

export interface EndpointRow {
  readonly id: string;
  readonly tenant_id: string;
  /** Raised with every change of settings. */
  readonly version: number;
  readonly url: string;
  readonly events: string[];
  readonly description: string | null;
  /** A JSON object of text by text. */
  readonly metadata: string;
  readonly profile: string;
  readonly envelope: EnvelopeName | null;
  readonly signature: SignatureName | null;
  readonly timeout_ms: number | null;
  readonly retry_waits_ms: number[] | null;
  readonly verification: VerificationWay | null;
  readonly payload: PayloadName;
  readonly sealed_headers: string | null;
  readonly sealed_credentials: string | null;
  readonly sealed_client_certificate: string | null;
  readonly client_certificate_expires_at: Date | null;
  /** Of its current Ed25519 key. */
  readonly public_key: string | null;
  readonly rate_limit_per_second: number | null;
  readonly allowed_rate_per_minute: number | null;
  readonly max_in_flight: number | null;
  readonly expires_at: Date | null;
  readonly owner_email: string | null;
  readonly ping_interval_ms: number | null;
  /** A date, or `newest`. */
  readonly api_version: string;
  /** A JSON object. */
  readonly filter: string | null;
  readonly status: EndpointStatus;
  readonly status_reason: string | null;
  readonly status_changed_at: Date;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly tries: number | null;
  readonly next_try_at: Date | null;
  readonly last_try_at: Date | null;
  readonly last_way: string | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly last_answer: string | null;
  readonly verified_at: Date | null;
  readonly verified_way: string | null;
}

/** What an endpoint's owner sets. Null: the profile's, the default, or none. */
export interface StoredSettings {
  readonly url: string;
  readonly events: readonly string[];
  readonly description: string | null;
  /** A JSON object of text by text. */
  readonly metadata: string;
  readonly profile: string;
  readonly envelope: EnvelopeName | null;
  readonly signature: SignatureName | null;
  readonly timeoutMs: number | null;
  readonly retryWaitsMs: readonly number[] | null;
  readonly verification: VerificationWay | null;
  readonly payload: PayloadName;
  readonly sealedHeaders: string | null;
  readonly sealedCredentials: string | null;
  readonly sealedClientCertificate: string | null;
  readonly clientCertificateExpiresAt: Date | null;
  readonly rateLimitPerSecond: number | null;
  readonly maxInFlight: number | null;
  readonly expiresAt: Date | null;
  readonly ownerEmail: string | null;
  readonly pingIntervalMs: number | null;
  /** A date, or `newest`. */
  readonly apiVersion: string;
  /** A JSON object; null: no filter. */
  readonly filter: string | null;
}

export interface NewEndpoint extends Partial<StoredSettings> {
  readonly id: string;
  readonly tenantId: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly profile: string;
  readonly sealedSecret: string;
  readonly signingKey?: SealedSigningKey | null;
  /** Nothing is delivered before it is verified; else it is active at once. */
  readonly verificationRequired?: boolean;
}

/** An Ed25519 key for an endpoint that signs by one, and has none. */
export interface SealedSigningKey {
  readonly sealed: string;
  readonly publicKey: string;
}

export interface EndpointChange extends Partial<StoredSettings> {
  readonly signingKey?: SealedSigningKey | null;
}

export interface ChangedEndpoint {
  readonly row: EndpointRow;
  readonly urlChanged: boolean;
  /** The endpoint's workflow has something to deal with. */
  readonly healthChanged: boolean;
}

const settingColumns: Readonly<Record<keyof StoredSettings, keyof EndpointRow>> = {
  url: 'url',
  events: 'events',
  description: 'description',
  metadata: 'metadata',
  profile: 'profile',
  envelope: 'envelope',
  signature: 'signature',
  timeoutMs: 'timeout_ms',
  retryWaitsMs: 'retry_waits_ms',
  verification: 'verification',
  payload: 'payload',
  sealedHeaders: 'sealed_headers',
  sealedCredentials: 'sealed_credentials',
  sealedClientCertificate: 'sealed_client_certificate',
  clientCertificateExpiresAt: 'client_certificate_expires_at',
  rateLimitPerSecond: 'rate_limit_per_second',
  maxInFlight: 'max_in_flight',
  expiresAt: 'expires_at',
  ownerEmail: 'owner_email',
  pingIntervalMs: 'ping_interval_ms',
  apiVersion: 'api_version',
  filter: 'filter',
};
const settingNames = Object.keys(settingColumns) as (keyof StoredSettings)[];

/** The endpoint's workflow acts on these. */
const healthSettings: ReadonlySet<keyof StoredSettings> = new Set([
  'url',
  'expiresAt',
  'clientCertificateExpiresAt',
  'ownerEmail',
  'pingIntervalMs',
  'verification',
] as const);

/** The sweeper tells the endpoint's workflow of a change that it wasn't told of within this time. */
const tellHealth = `health_version = health_version + 1, health_sweep_after = now() + interval '5 s'`;

const select = `
  select e.id, e.tenant_id, e.version, e.url, e.events, e.description, e.metadata, e.profile, e.envelope, e.signature, e.timeout_ms,
         e.retry_waits_ms, e.verification, e.payload, e.sealed_headers, e.sealed_credentials, e.sealed_client_certificate,
         e.client_certificate_expires_at, e.rate_limit_per_second, e.allowed_rate_per_minute,
         e.max_in_flight, e.expires_at, e.owner_email, e.ping_interval_ms::float8 as ping_interval_ms, e.api_version, e.filter, e.status, e.status_reason,
         e.status_changed_at, e.created_at, e.updated_at, c.tries, c.next_at as next_try_at, c.last_at as last_try_at, c.last_way,
         c.last_status_code, c.last_error, c.last_answer, c.passed_at as verified_at, c.passed_way as verified_way,
         (select s.public_key from endpoint_secrets s
           where s.endpoint_id = e.id and s.type = 'ed25519' and s.expires_at is null order by s.seq desc limit 1) as public_key
    from endpoints e left join endpoint_checks c on c.endpoint_id = e.id and c.kind = 'verification'`;

export class EndpointStore {
  constructor(private readonly db: DataSource) {}

  async create({
    id,
    tenantId,
    sealedSecret,
    signingKey = null,
    verificationRequired = false,
    ...settings
  }: NewEndpoint): Promise<EndpointRow> {
    const { columns, values } = toColumns(settings);
    const fixed = [
      id,
      tenantId,
      verificationRequired,
      newId(idPrefixes.secret),
      sealedSecret,
      newId(idPrefixes.secret),
      signingKey?.sealed,
      signingKey?.publicKey,
    ];
    await this.db.query(
      `with e as (
         insert into endpoints (id, tenant_id, status, health_version, health_sweep_after, ${columns.join(', ')})
         values ($1, $2, case when $3::boolean then 'pending_verification' else 'active' end, 1, now() + interval '5 s',
                 ${columns.map((_, index) => `$${fixed.length + index + 1}`).join(', ')})
         returning id
       ), s as (
         insert into endpoint_secrets (id, endpoint_id, sealed, type, public_key)
         select k.id, e.id, k.sealed, k.type, k.public_key
           from e, (values ($4, $5, 'hmac', null), ($6, $7, 'ed25519', $8)) k (id, sealed, type, public_key) where k.sealed is not null)
       insert into endpoint_checks (endpoint_id, kind, next_at, passed_at)
       select id, 'verification', case when $3 then now() end, case when not $3 then now() end from e`,
      [...fixed, ...values],
    );
    const row = await this.get(tenantId, id);
    if (!row) throw new Error(`endpoint ${id} was not stored`);
    return row;
  }

  async list(tenantId: string, page: PageRequest): Promise<Page<EndpointRow>> {
    const keys = keyset('e.id', page, 2);
    const rows = await this.db.query<EndpointRow[]>(
      `${select} where e.tenant_id = $1 and e.deleted_at is null ${keys.where} ${keys.order}`,
      [tenantId, ...keys.values],
    );
    return toPage(rows, page);
  }

  async get(tenantId: string, id: string): Promise<EndpointRow | null> {
    return find(this.db.manager, tenantId, id);
  }

  /**
   * Changes settings. `decide` sees the row as it is, locked, and says what becomes other; what it throws leaves all as it was.
   * Another URL has a history of its own, and has to be verified. Null when the tenant has no such endpoint.
   */
  async change(
    tenantId: string,
    id: string,
    verificationRequired: boolean,
    decide: (row: EndpointRow) => EndpointChange,
  ): Promise<ChangedEndpoint | null> {
    return this.db.transaction(async (tx) => {
      const before = await find(tx, tenantId, id, 'for update of e');
      if (!before) return null;
      const wanted = decide(before);
      const changed = settingNames.filter(
        (name) => wanted[name] !== undefined && !isSame(wanted[name], before[settingColumns[name]]),
      );
      const urlChanged = changed.includes('url');
      const healthChanged = changed.some((name) => healthSettings.has(name));
      if (changed.length === 0) return { row: before, urlChanged, healthChanged };
      const { columns, values } = toColumns(Object.fromEntries(changed.map((name) => [name, wanted[name]])));
      await tx.query(
        `update endpoints set version = version + 1, updated_at = now(), ${healthChanged ? `${tellHealth},` : ''}
                ${columns.map((column, index) => `${column} = $${index + 3}`).join(', ')}
          where tenant_id = $1 and id = $2`,
        [tenantId, id, ...values],
      );
      if (changed.includes('signature') && wanted.signingKey) await addSigningKey(tx, id, wanted.signingKey);
      if (urlChanged) {
        await forgetHistory(tx, tenantId, id, verificationRequired);
        await restartVerification(tx, id, verificationRequired);
      }
      const row = await find(tx, tenantId, id);
      return row && { row, urlChanged, healthChanged };
    });
  }

  /** Verification begins anew, also where its time was over. Null when the tenant has no such endpoint. */
  async verifyAgain(tenantId: string, id: string): Promise<EndpointRow | 'already_verified' | null> {
    return this.db.transaction(async (tx) => {
      const before = await find(tx, tenantId, id, 'for update of e');
      if (!before) return null;
      if (before.verified_at !== null) return 'already_verified';
      await tx.query(
        `update endpoints e set ${tellHealth}, status = n.status,
                status_reason = case when n.status = e.status then e.status_reason end,
                status_changed_at = case when n.status = e.status then e.status_changed_at else now() end
           from (select id, case when ${isExpired} then 'pending_verification' else status end as status
                   from endpoints where tenant_id = $1 and id = $2) n
          where e.id = n.id`,
        [tenantId, id],
      );
      await tx.query(
        `insert into endpoint_checks (endpoint_id, kind, next_at) values ($1, 'verification', now())
         on conflict (endpoint_id, kind) do update set started_at = now(), tries = 0, next_at = now()
           where endpoint_checks.passed_at is null`,
        [id],
      );
      return find(tx, tenantId, id);
    });
  }

  /** The endpoint with this URL and description, and its current sealed secret: how the embedded default finds its own. */
  async findSample(tenantId: string, url: string, description: string): Promise<{ id: string; sealed: string } | null> {
    const [row] = await this.db.query<{ id: string; sealed: string }[]>(
      `select e.id, s.sealed from endpoints e join endpoint_secrets s on s.endpoint_id = e.id
        where e.tenant_id = $1 and e.url = $2 and e.description = $3 and e.deleted_at is null and s.type = 'hmac' and s.expires_at is null
        order by s.seq desc limit 1`,
      [tenantId, url, description],
    );
    return row ?? null;
  }

  /** Marks the endpoint deleted; false when the tenant has no such endpoint. What waits for it is closed by WaitingDeliveries. */
  async delete(tenantId: string, id: string): Promise<boolean> {
    const rows = await this.db.query<{ id: string }[]>(
      `with e as (update endpoints set deleted_at = now(), updated_at = now(), ${tellHealth}
                   where tenant_id = $1 and id = $2 and deleted_at is null returning id)
       select id from e`,
      [tenantId, id],
    );
    return rows.length > 0;
  }
}

/** Where it has one already, that one goes on. */
async function addSigningKey(tx: EntityManager, id: string, { sealed, publicKey }: SealedSigningKey): Promise<void> {
  await tx.query(
    `insert into endpoint_secrets (id, endpoint_id, sealed, type, public_key)
     select $1, $2, $3, 'ed25519', $4
      where not exists (select from endpoint_secrets where endpoint_id = $2 and type = 'ed25519' and expires_at is null)`,
    [newId(idPrefixes.secret), id, sealed, publicKey],
  );
}

const isExpired = `(status = 'disabled' and status_reason = 'verification_expired')`;

async function find(db: EntityManager, tenantId: string, id: string, lock = ''): Promise<EndpointRow | null> {
  const [row] = await db.query<EndpointRow[]>(
    `${select} where e.tenant_id = $1 and e.id = $2 and e.deleted_at is null ${lock}`,
    [tenantId, id],
  );
  return row ?? null;
}

/** What was found out about an endpoint says nothing of another URL. Who is paused, disabled or expired for another reason stays it. */
async function forgetHistory(tx: EntityManager, tenantId: string, id: string, required: boolean): Promise<void> {
  await tx.query(
    `update endpoints e set
       status = n.status,
       status_reason = case when n.begins then null else e.status_reason end,
       status_changed_at = case when n.status = e.status then e.status_changed_at else now() end,
       failing_since = null, refused_since = null, last_success_at = null, not_before = null, quick = true,
       allowed_rate_per_minute = null
      from (select id, begins, case when not begins then status when $3::boolean then 'pending_verification' else 'active' end as status
              from (select id, status, status in ('active', 'pending_verification') or ${isExpired} as begins
                      from endpoints where tenant_id = $1 and id = $2) o) n
     where e.id = n.id`,
    [tenantId, id, required],
  );
}

/** The token goes too: whoever was asked at the old URL can't agree for the new one. */
async function restartVerification(tx: EntityManager, id: string, required: boolean): Promise<void> {
  await tx.query(
    `insert into endpoint_checks (endpoint_id, kind, next_at, passed_at)
     values ($1, 'verification', case when $2::boolean then now() end, case when not $2::boolean then now() end)
     on conflict (endpoint_id, kind) do update set
       started_at = now(), tries = 0, next_at = excluded.next_at, last_at = null, last_way = null, last_status_code = null,
       last_error = null, last_answer = null, passed_at = excluded.passed_at, passed_way = null, sealed_token = null`,
    [id, required],
  );
}

/** Columns and values of the given settings; what the fan-out compares goes with the events. */
function toColumns(settings: Partial<StoredSettings>): { columns: string[]; values: unknown[] } {
  const names = settingNames.filter((name) => settings[name] !== undefined);
  const columns: string[] = names.map((name) => settingColumns[name]);
  const values: unknown[] = names.map((name) => settings[name]);
  if (settings.events === undefined) return { columns, values };
  return { columns: [...columns, 'event_likes'], values: [...values, settings.events.map(eventFilterToLike)] };
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
