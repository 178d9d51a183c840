import type { DataSource } from 'typeorm';
import type { EndpointStatus } from '../domain/closed-lists.js';
import { eventFilterToLike } from '../domain/event-type.js';
import { keyset, type Page, type PageRequest, toPage } from './page.js';

export interface EndpointRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly url: string;
  readonly events: string[];
  readonly description: string | null;
  readonly profile: string;
  readonly timeout_ms: number;
  readonly retry_waits_ms: number[] | null;
  readonly status: EndpointStatus;
  readonly status_reason: string | null;
  readonly status_changed_at: Date;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export interface NewEndpoint {
  readonly id: string;
  readonly tenantId: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly description: string | null;
  readonly profile: string;
  readonly timeoutMs: number;
  readonly retryWaitsMs: readonly number[] | null;
  readonly sealedSecret: string;
}

const columns = `id, tenant_id, url, events, description, profile, timeout_ms, retry_waits_ms, status, status_reason, status_changed_at,
  created_at, updated_at`;

export class EndpointStore {
  constructor(private readonly db: DataSource) {}

  async create(endpoint: NewEndpoint): Promise<EndpointRow> {
    const rows = await this.db.query<[EndpointRow]>(
      `with e as (
         insert into endpoints (id, tenant_id, url, events, event_likes, description, profile, timeout_ms, retry_waits_ms, status)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'active') returning *
       ), s as (insert into endpoint_secrets (endpoint_id, sealed) select id, $10 from e)
       select ${columns} from e`,
      [
        endpoint.id,
        endpoint.tenantId,
        endpoint.url,
        endpoint.events,
        endpoint.events.map(eventFilterToLike),
        endpoint.description,
        endpoint.profile,
        endpoint.timeoutMs,
        endpoint.retryWaitsMs,
        endpoint.sealedSecret,
      ],
    );
    return rows[0];
  }

  async list(tenantId: string, page: PageRequest): Promise<Page<EndpointRow>> {
    const keys = keyset('id', page, 2);
    const rows = await this.db.query<EndpointRow[]>(
      `select ${columns} from endpoints where tenant_id = $1 and deleted_at is null ${keys.where} ${keys.order}`,
      [tenantId, ...keys.values],
    );
    return toPage(rows, page);
  }

  async get(tenantId: string, id: string): Promise<EndpointRow | null> {
    const [row] = await this.db.query<EndpointRow[]>(
      `select ${columns} from endpoints where tenant_id = $1 and id = $2 and deleted_at is null`,
      [tenantId, id],
    );
    return row ?? null;
  }

  /** The endpoint with this URL and description, and its current sealed secret: how the embedded default finds its own. */
  async findSample(tenantId: string, url: string, description: string): Promise<{ id: string; sealed: string } | null> {
    const [row] = await this.db.query<{ id: string; sealed: string }[]>(
      `select e.id, s.sealed from endpoints e join endpoint_secrets s on s.endpoint_id = e.id
        where e.tenant_id = $1 and e.url = $2 and e.description = $3 and e.deleted_at is null and s.expires_at is null
        order by s.id desc limit 1`,
      [tenantId, url, description],
    );
    return row ?? null;
  }

  /** Marks the endpoint deleted; false when the tenant has no such endpoint. What waits for it is closed by WaitingDeliveries. */
  async delete(tenantId: string, id: string): Promise<boolean> {
    const rows = await this.db.query<{ id: string }[]>(
      `with e as (update endpoints set deleted_at = now(), updated_at = now()
                   where tenant_id = $1 and id = $2 and deleted_at is null returning id)
       select id from e`,
      [tenantId, id],
    );
    return rows.length > 0;
  }
}
