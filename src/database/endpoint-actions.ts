import type { DataSource, EntityManager } from 'typeorm';
import type { EndpointStatus } from '../domain/closed-lists.js';

/** What came of pause, resume, enable, renew. Repeating what is done already changes nothing. */
export type ActionResult =
  | { readonly kind: 'done'; readonly changed: boolean; readonly status: EndpointStatus }
  /** The endpoint's state doesn't allow it; `remedy` does. */
  | { readonly kind: 'conflict'; readonly status: EndpointStatus; readonly remedy: Action }
  /** A time that has passed already can't be the end. */
  | { readonly kind: 'past' };

export type Action = 'resume' | 'enable' | 'renew';

interface Locked {
  readonly status: EndpointStatus;
  readonly expires_at: Date | null;
  readonly expired: boolean;
}

/** What leads out of a state. */
const wayOut = { paused: 'resume', disabled: 'enable', expired: 'renew' } as const;

/** The sweeper tells the endpoint's workflow of a change that it wasn't told of within this time. */
const tellHealth = `health_version = health_version + 1, health_sweep_after = now() + interval '5 s'`;

export function pauseEndpoint(db: DataSource, tenantId: string, id: string): Promise<ActionResult | null> {
  return act(db, tenantId, id, async (tx, { status }) => {
    if (status === 'paused') return unchanged(status);
    if (status === 'disabled' || status === 'expired') return conflict(status);
    await tx.query(
      `update endpoints set status = 'paused', status_reason = null, status_changed_at = now(), ${tellHealth} where id = $1`,
      [id],
    );
    return { kind: 'done', changed: true, status: 'paused' };
  });
}

export function resumeEndpoint(db: DataSource, tenantId: string, id: string): Promise<ActionResult | null> {
  return act(db, tenantId, id, async (tx, { status }) => {
    if (status === 'active' || status === 'pending_verification') return unchanged(status);
    if (status !== 'paused') return conflict(status);
    return { kind: 'done', changed: true, status: await reopen(tx, id, { keepFailing: true }) };
  });
}

export function enableEndpoint(db: DataSource, tenantId: string, id: string): Promise<ActionResult | null> {
  return act(db, tenantId, id, async (tx, { status, expired }) => {
    if (status === 'active' || status === 'pending_verification') return unchanged(status);
    if (status !== 'disabled') return conflict(status);
    // It would expire the moment that it is enabled.
    if (expired) return { kind: 'conflict', status, remedy: 'renew' };
    return { kind: 'done', changed: true, status: await reopen(tx, id) };
  });
}

export function renewEndpoint(
  db: DataSource,
  tenantId: string,
  id: string,
  expiresAt: Date | null,
): Promise<ActionResult | null> {
  return act(db, tenantId, id, async (tx, { status, expires_at: before }) => {
    const isSame = (before?.getTime() ?? null) === (expiresAt?.getTime() ?? null);
    if (isSame && status !== 'expired') return unchanged(status);
    const [set] = await tx.query<unknown[]>(
      `with e as (
         update endpoints set expires_at = $2, version = version + 1, updated_at = now(), ${tellHealth}
          where id = $1 and ($2::timestamptz is null or $2 > now()) returning 1)
       select 1 from e`,
      [id, expiresAt],
    );
    if (!set) return { kind: 'past' };
    const now = status === 'expired' ? await reopen(tx, id) : status;
    return { kind: 'done', changed: true, status: now };
  });
}

/**
 * The endpoint takes deliveries again: one at a time at first, since it has yet to show that it answers. One that was never
 * verified has to be, with all the time for it.
 */
export async function reopen(tx: EntityManager, id: string, { keepFailing = false } = {}): Promise<EndpointStatus> {
  const [row] = await tx.query<{ status: EndpointStatus }[]>(
    `with e as (
       update endpoints e set
         status = case when exists (select from endpoint_checks v
                                     where v.endpoint_id = e.id and v.kind = 'verification' and v.passed_at is not null)
                  then 'active' else 'pending_verification' end,
         status_reason = null, status_changed_at = now(), pace = 'probing', probe_after = null, failure_streak = 0,
         rising_since = null, resumed_at = now(),
         failing_since = case when $2 then failing_since end, refused_since = case when $2 then refused_since end, ${tellHealth}
        where id = $1 returning status
     ), v as (
       insert into endpoint_checks as c (endpoint_id, kind, next_at)
       select $1, 'verification', now() from e where status = 'pending_verification'
       on conflict (endpoint_id, kind) do update set started_at = now(), tries = 0, next_at = now()
     ), p as (
       update endpoint_checks set next_at = null where endpoint_id = $1 and kind = 'probe'
     )
     select status from e`,
    [id, keepFailing],
  );
  if (!row) throw new Error(`endpoint ${id} is not there any more`);
  return row.status;
}

async function act(
  db: DataSource,
  tenantId: string,
  id: string,
  decide: (tx: EntityManager, row: Locked) => Promise<ActionResult>,
): Promise<ActionResult | null> {
  return db.transaction(async (tx) => {
    const [row] = await tx.query<Locked[]>(
      `select status, expires_at, coalesce(expires_at <= now(), false) as expired
         from endpoints where tenant_id = $1 and id = $2 and deleted_at is null for no key update`,
      [tenantId, id],
    );
    return row ? decide(tx, row) : null;
  });
}

const unchanged = (status: EndpointStatus): ActionResult => ({ kind: 'done', changed: false, status });
const conflict = (status: keyof typeof wayOut): ActionResult => ({ kind: 'conflict', status, remedy: wayOut[status] });
