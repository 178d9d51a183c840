import type { DataSource, EntityManager } from 'typeorm';
import { deliveryRules, type EventTypeDefinition } from '../domain/event-catalogue.js';
import { keyset, type Page, type PageRequest, toPage } from './page.js';

export interface EventTypeRow {
  readonly name: string;
  readonly definition: EventTypeDefinition;
  readonly seq: string;
  readonly revision: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** What publishing needs to know of a type. */
export interface PublishRule {
  readonly newest: string | null;
  readonly enforce: boolean;
  readonly revision: string;
}

export interface TypeKey {
  readonly tenantId: string;
  readonly name: string;
}

interface StoredRow extends Omit<EventTypeRow, 'definition'> {
  readonly definition: string;
}

const columns = 'name, definition, seq::text, revision::text, created_at, updated_at';

/** Event types, each with its whole definition. Read by their tenant. */
export class EventTypeStore {
  constructor(private readonly db: DataSource) {}

  /** Those that were registered last, first. */
  async list(tenantId: string, page: PageRequest): Promise<Page<EventTypeRow>> {
    const keys = keyset('t.seq', page, 2);
    const rows = await this.db.query<StoredRow[]>(
      `select ${columns} from event_types t where tenant_id = $1 ${keys.where} ${keys.order}`,
      [tenantId, ...keys.values],
    );
    return toPage(rows.map(toRow), page, ({ seq }) => seq);
  }

  async all(tenantId: string, db: EntityManager = this.db.manager): Promise<EventTypeRow[]> {
    const rows = await db.query<StoredRow[]>(`select ${columns} from event_types where tenant_id = $1 order by name`, [
      tenantId,
    ]);
    return rows.map(toRow);
  }

  async get(tenantId: string, name: string): Promise<EventTypeRow | null> {
    const [row] = await this.db.query<StoredRow[]>(
      `select ${columns} from event_types where tenant_id = $1 and name = $2`,
      [tenantId, name],
    );
    return row ? toRow(row) : null;
  }

  /** What is known of these types; those that aren't registered are missing. */
  async publishRules(keys: readonly TypeKey[]): Promise<(TypeKey & PublishRule)[]> {
    return this.db.query(
      `select t.tenant_id as "tenantId", t.name, t.newest, t.enforce, t.revision::text
         from unnest($1::text[], $2::text[]) as n (tenant_id, name)
         join event_types t on t.tenant_id = n.tenant_id and t.name = n.name`,
      [keys.map(({ tenantId }) => tenantId), keys.map(({ name }) => name)],
    );
  }

  /** The newest version of all the tenant's types; null where there is none. */
  async newestVersion(tenantId: string): Promise<string | null> {
    const [row] = await this.db.query<{ newest: string | null }[]>(
      'select max(newest) as newest from event_types where tenant_id = $1',
      [tenantId],
    );
    return row?.newest ?? null;
  }

  /**
   * One writer of a tenant's catalogue at a time: `work` sees all that is there, and what it throws leaves it as it was.
   * @returns what `work` returns.
   */
  async change<T>(tenantId: string, work: (tx: EntityManager) => Promise<T>): Promise<T> {
    return this.db.transaction(async (tx) => {
      await tx.query(`select pg_advisory_xact_lock(hashtextextended('event-types/' || $1, 0))`, [tenantId]);
      return work(tx);
    });
  }

  async put(tx: EntityManager, tenantId: string, types: readonly EventTypeDefinition[]): Promise<void> {
    if (types.length === 0) return;
    const rules = types.map(deliveryRules);
    await tx.query(
      `insert into event_types as t (tenant_id, name, definition, rules, newest, enforce)
       select $1, n.name, n.definition, n.rules, n.newest, n.enforce
         from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[]) as n (name, definition, rules, newest, enforce)
       on conflict (tenant_id, name) do update set
         definition = excluded.definition, rules = excluded.rules, newest = excluded.newest, enforce = excluded.enforce,
         revision = default, updated_at = now()
        where t.definition <> excluded.definition`,
      [
        tenantId,
        types.map(({ name }) => name),
        types.map((type) => JSON.stringify(type)),
        rules.map((one) => (one === null ? null : JSON.stringify(one))),
        types.map(({ versions }) => versions.at(-1)?.version ?? null),
        types.map(({ enforce }) => enforce),
      ],
    );
  }

  /** How many of the names were there. */
  async remove(tx: EntityManager, tenantId: string, names: readonly string[]): Promise<number> {
    const rows = await tx.query<unknown[]>(
      `with d as (delete from event_types where tenant_id = $1 and name = any($2) returning 1) select 1 from d`,
      [tenantId, names],
    );
    return rows.length;
  }

  /** Bytes of all definitions of the tenant. */
  async size(tx: EntityManager, tenantId: string): Promise<number> {
    const [row] = await tx.query<{ size: string }[]>(
      'select coalesce(sum(octet_length(definition)), 0)::text as size from event_types where tenant_id = $1',
      [tenantId],
    );
    return Number(row?.size ?? 0);
  }

  /** The data of the tenant's newest event of this type, with its version; null where none has kept its data. */
  async newestEvent(tenantId: string, type: string): Promise<{ data: string; apiVersion: string | null } | null> {
    const [row] = await this.db.query<{ data: string; apiVersion: string | null }[]>(
      `select data, api_version as "apiVersion" from events
        where tenant_id = $1 and type = $2 and payload_purged_at is null order by epoch desc, xid desc, seq desc limit 1`,
      [tenantId, type],
    );
    return row ?? null;
  }
}

function toRow(row: StoredRow): EventTypeRow {
  return { ...row, definition: JSON.parse(row.definition) as EventTypeDefinition };
}
