import type { DataSource } from 'typeorm';
import {
  clientCertificateContext,
  consentContext,
  credentialsContext,
  headersContext,
} from '../delivery/open-endpoint.js';

/** A sealed text where it stands. */
export interface SealedText {
  readonly key: string;
  readonly sealed: string;
  /** What it was sealed for. */
  readonly context: string;
}

interface SealedColumn {
  readonly name: string;
  readonly table: string;
  readonly column: string;
  /** A unique text or number by which the rows are gone through. */
  readonly key: string;
  readonly context: (endpointId: string) => string;
  readonly endpointId: string;
}

/** Every column that holds sealed texts. */
export const sealedColumns: readonly SealedColumn[] = [
  {
    name: 'signing secrets',
    table: 'endpoint_secrets',
    column: 'sealed',
    key: 'id',
    endpointId: 'endpoint_id',
    context: (endpointId) => endpointId,
  },
  {
    name: 'headers of endpoints',
    table: 'endpoints',
    column: 'sealed_headers',
    key: 'id',
    endpointId: 'id',
    context: headersContext,
  },
  {
    name: 'credentials of endpoints',
    table: 'endpoints',
    column: 'sealed_credentials',
    key: 'id',
    endpointId: 'id',
    context: credentialsContext,
  },
  {
    name: 'client certificates of endpoints',
    table: 'endpoints',
    column: 'sealed_client_certificate',
    key: 'id',
    endpointId: 'id',
    context: clientCertificateContext,
  },
  {
    name: 'tokens of handshakes',
    table: 'endpoint_checks',
    column: 'sealed_token',
    key: `endpoint_id || '/' || kind`,
    endpointId: 'endpoint_id',
    context: consentContext,
  },
];

/** Finds sealed texts by the key that sealed them, and puts others in their place. */
export class SealedTextStore {
  constructor(private readonly db: DataSource) {}

  /** Texts of a column that another key than this one sealed, in the order of their keys. */
  async sealedByOthers(
    { table, column, key, endpointId, context }: SealedColumn,
    prefix: string,
    after: string,
    limit: number,
  ): Promise<SealedText[]> {
    const rows = await this.db.query<{ key: string; sealed: string; endpoint_id: string }[]>(
      `select ${key} as key, ${column} as sealed, ${endpointId} as endpoint_id from ${table}
        where ${column} is not null and not starts_with(${column}, $1) and ${key} > $2 order by 1 limit $3`,
      [prefix, after, limit],
    );
    return rows.map((row) => ({ key: row.key, sealed: row.sealed, context: context(row.endpoint_id) }));
  }

  /** False when somebody else changed the text meanwhile. */
  async replace({ table, column, key }: SealedColumn, old: SealedText, sealed: string): Promise<boolean> {
    const rows = await this.db.query<unknown[]>(
      `with changed as (update ${table} set ${column} = $3 where ${key} = $1 and ${column} = $2 returning 1) select 1 from changed`,
      [old.key, old.sealed, sealed],
    );
    return rows.length > 0;
  }
}
