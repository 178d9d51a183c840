import type { DataSource } from 'typeorm';

export interface ApiKeyRow {
  readonly id: string;
  /** Null: a service key, which acts for every tenant. */
  readonly tenant_id: string | null;
  readonly name: string;
  readonly created_at: Date;
}

export class ApiKeyStore {
  constructor(private readonly db: DataSource) {}

  async findByHash(hash: Buffer): Promise<ApiKeyRow | null> {
    const [row] = await this.db.query<ApiKeyRow[]>(
      'select id, tenant_id, name, created_at from api_keys where key_hash = $1 and revoked_at is null',
      [hash],
    );
    return row ?? null;
  }

  async any(): Promise<boolean> {
    const rows = await this.db.query<unknown[]>('select 1 from api_keys where revoked_at is null limit 1');
    return rows.length > 0;
  }

  /** Adds a key; one with the same value stays as it is. */
  async add(key: { id: string; tenantId: string | null; name: string; hash: Buffer }): Promise<void> {
    await this.db.query(
      'insert into api_keys (id, tenant_id, name, key_hash) values ($1, $2, $3, $4) on conflict (key_hash) do nothing',
      [key.id, key.tenantId, key.name, key.hash],
    );
  }
}
