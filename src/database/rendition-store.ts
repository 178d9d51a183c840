import type { DataSource } from 'typeorm';

/** An event's data in another version than its own: made once, and the same for every attempt and every endpoint. */
export class RenditionStore {
  constructor(private readonly db: DataSource) {}

  async find(tenantId: string, eventId: string, version: string): Promise<string | null> {
    const [row] = await this.db.query<{ data: string }[]>(
      'select data from event_renditions where tenant_id = $1 and event_id = $2 and api_version = $3',
      [tenantId, eventId, version],
    );
    return row?.data ?? null;
  }

  /** Keeps the data, unless somebody was quicker: what was kept first counts, and is returned. */
  async keep(tenantId: string, eventId: string, version: string, data: string): Promise<string> {
    await this.db.query(
      `insert into event_renditions (tenant_id, event_id, api_version, data)
       select tenant_id, id, $3, $4 from events where tenant_id = $1 and id = $2 and payload_purged_at is null
       on conflict do nothing`,
      [tenantId, eventId, version, data],
    );
    return (await this.find(tenantId, eventId, version)) ?? data;
  }
}
