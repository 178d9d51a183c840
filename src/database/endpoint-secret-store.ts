import type { DataSource, EntityManager } from 'typeorm';
import { idPrefixes } from '../domain/ids.js';
import type { SecretType } from '../domain/signing-secret.js';
import { newId } from '../security/new-id.js';

/** So many secrets of a type sign at the same time: each is a part of every signature header. */
export const maxLiveSecrets = 5;

/** What may be told of a secret. */
export interface SecretRow {
  readonly id: string;
  readonly type: SecretType;
  /** Of an Ed25519 key. */
  readonly public_key: string | null;
  readonly created_at: Date;
  /** Null: the current one. */
  readonly expires_at: Date | null;
}

export type RotationResult =
  | { readonly kind: 'rotated'; readonly secret: SecretRow; readonly healthChanged: boolean }
  | { readonly kind: 'too_many_secrets' }
  | { readonly kind: 'known_secret' };

export interface Rotation {
  /** Null: of the type by which the endpoint signs. */
  readonly type: SecretType | null;
  readonly overlapMs: number;
  readonly make: (type: SecretType) => NewSecret;
}

export interface NewSecret {
  readonly sealed: string;
  readonly publicKey: string | null;
  /** Is the sealed text the new secret? */
  readonly isSame: (sealed: string) => boolean;
}

/** What everybody may verify by. */
export interface PublicKeyRow {
  readonly id: string;
  readonly public_key: string;
  readonly expires_at: Date | null;
}

const columns = 'id, type, public_key, created_at, expires_at';
const isLive = '(expires_at is null or expires_at > clock_timestamp())';

/** The secrets of an endpoint: the newest is the current one, older ones sign beside it until they end. */
export class EndpointSecretStore {
  constructor(private readonly db: DataSource) {}

  /** Those that sign now, newest first. Null when the tenant has no such endpoint. */
  async list(tenantId: string, endpointId: string): Promise<SecretRow[] | null> {
    const rows = await this.db.query<(SecretRow | { id: null })[]>(
      `select s.id, s.type, s.public_key, s.created_at, s.expires_at
         from endpoints e left join endpoint_secrets s on s.endpoint_id = e.id
          and (s.expires_at is null or s.expires_at > clock_timestamp())
        where e.tenant_id = $1 and e.id = $2 and e.deleted_at is null order by s.seq desc`,
      [tenantId, endpointId],
    );
    return rows.length === 0 ? null : rows.filter((row): row is SecretRow => row.id !== null);
  }

  /** The public halves of the keys that sign, or are about to, newest first: no secret, so no tenant is asked. */
  async publicKeys(endpointId: string): Promise<PublicKeyRow[]> {
    return this.db.query<PublicKeyRow[]>(
      `select s.id, s.public_key, s.expires_at from endpoints e join endpoint_secrets s on s.endpoint_id = e.id
        where e.id = $1 and e.deleted_at is null and s.type = 'ed25519' and (s.expires_at is null or s.expires_at > clock_timestamp())
        order by s.seq desc`,
      [endpointId],
    );
  }

  /**
   * The new secret signs at once; the one before goes on for the overlap, and those that end already keep their end. One rotation
   * of an endpoint at a time. Null when the tenant has no such endpoint.
   */
  async rotate(
    tenantId: string,
    endpointId: string,
    { type: wanted, overlapMs, make }: Rotation,
  ): Promise<RotationResult | null> {
    return this.db.transaction(async (tx): Promise<RotationResult | null> => {
      const endpoint = await lock(tx, tenantId, endpointId);
      if (!endpoint) return null;
      const type = wanted ?? endpoint.type;
      const { sealed, publicKey, isSame } = make(type);
      const live = await tx.query<{ sealed: string; expires_at: Date | null }[]>(
        `select sealed, expires_at from endpoint_secrets where endpoint_id = $1 and type = $2 and ${isLive}`,
        [endpointId, type],
      );
      if (live.some((secret) => isSame(secret.sealed))) return { kind: 'known_secret' };
      const staying = live.filter(({ expires_at }) => overlapMs > 0 || expires_at !== null);
      if (staying.length >= maxLiveSecrets) return { kind: 'too_many_secrets' };
      // What has ended is of no use to anybody but a thief.
      await tx.query(
        `delete from endpoint_secrets where endpoint_id = $1 and (not ${isLive} or ($2 and expires_at is null and type = $3))`,
        [endpointId, overlapMs === 0, type],
      );
      await tx.query(
        `update endpoint_secrets set expires_at = clock_timestamp() + $2 * interval '1 ms'
          where endpoint_id = $1 and expires_at is null and type = $3`,
        [endpointId, overlapMs, type],
      );
      const [secret] = await tx.query<[SecretRow]>(
        `insert into endpoint_secrets (id, endpoint_id, sealed, type, public_key, created_at)
         values ($1, $2, $3, $4, $5, clock_timestamp()) returning ${columns}`,
        [newId(idPrefixes.secret), endpointId, sealed, type, publicKey],
      );
      // The next refusal is about the new secret.
      if (endpoint.refused) {
        await tx.query(
          `update endpoints set refused_since = null, health_version = health_version + 1, health_sweep_after = now() + interval '5 s'
            where tenant_id = $1 and id = $2`,
          [tenantId, endpointId],
        );
      }
      return { kind: 'rotated', secret, healthChanged: endpoint.refused };
    });
  }

  /** Ends an old secret now. Null when the tenant has no such endpoint. */
  async end(tenantId: string, endpointId: string, id: string): Promise<'ended' | 'current' | 'unknown' | null> {
    return this.db.transaction(async (tx) => {
      if (!(await lock(tx, tenantId, endpointId))) return null;
      const [secret] = await tx.query<SecretRow[]>(
        `select ${columns} from endpoint_secrets where endpoint_id = $1 and id = $2 and ${isLive}`,
        [endpointId, id],
      );
      if (!secret) return 'unknown';
      if (secret.expires_at === null) return 'current';
      await tx.query(`delete from endpoint_secrets where endpoint_id = $1 and id = $2`, [endpointId, id]);
      return 'ended';
    });
  }
}

interface LockedEndpoint {
  readonly refused: boolean;
  /** By which it signs. */
  readonly type: SecretType;
}

/** Whoever sends to the endpoint finds its row changed, and reads its secrets anew. */
async function lock(tx: EntityManager, tenantId: string, endpointId: string): Promise<LockedEndpoint | null> {
  const [row] = await tx.query<LockedEndpoint[]>(
    `with e as (
       update endpoints set tenant_id = tenant_id where tenant_id = $1 and id = $2 and deleted_at is null
       returning refused_since is not null as refused,
                 case signature when 'standard_webhooks_ed25519' then 'ed25519' else 'hmac' end as type
     )
     select * from e`,
    [tenantId, endpointId],
  );
  return row ?? null;
}
