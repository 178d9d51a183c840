import { ulid } from 'ulid';
import type { Attempts } from './attempts/harness.js';

export const day = 86_400_000;

export interface Past {
  /** When it was accepted and, if it is closed, closed. */
  readonly ageMs: number;
  readonly closedAgeMs?: number;
  readonly status?: string;
  readonly attempts?: number;
  readonly letter?: 'open' | 'resolved';
}

export interface PastDelivery {
  readonly id: string;
  readonly eventId: string;
  readonly endpointId: string;
}

/** An event with one delivery, as it would stand there after so long. */
export async function inThePast(attempts: Attempts, endpointId: string, past: Past): Promise<PastDelivery> {
  const { ageMs, closedAgeMs = ageMs, status = 'succeeded', letter } = past;
  const at = new Date(Date.now() - ageMs);
  const closedAt = new Date(Date.now() - closedAgeMs);
  const id = `whd_${ulid(at.getTime())}`;
  const eventId = `evt_${ulid(at.getTime())}`;
  await attempts.sql(
    `insert into events (tenant_id, id, type, data, created_at, accepted_at, body_hash)
     values ('default', $1, 'past.happened', '{"n":1}', $2, $2, '\\x00')`,
    [eventId, at],
  );
  await attempts.sql(
    `insert into deliveries (id, tenant_id, event_id, endpoint_id, type, status, reason, attempt_count, created_at, updated_at, sweep_after)
     values ($1, 'default', $2, $3, 'past.happened', $4, 'delivered', $5, $6, $7, case when $4 in ('pending', 'retrying') then now() + interval '1 day' end)`,
    [id, eventId, endpointId, status, past.attempts ?? 1, at, closedAt],
  );
  for (let n = 1; n <= (past.attempts ?? 1); n += 1) {
    await attempts.sql(
      `insert into attempts (id, delivery_id, endpoint_id, number, round, run_id, sequence, started_at, duration_ms, outcome)
       values ($1, $2, $3, $4, 1, 'run', $4, $5, 1, $6)`,
      [`att_${ulid(closedAt.getTime())}`, id, endpointId, n, closedAt, status === 'succeeded' ? 'delivered' : 'failed'],
    );
  }
  if (letter) {
    await attempts.sql(
      `insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, created_at, expires_at,
                                 announced_at, resolved_at, resolution)
       values ($1, 1, 'default', $2, $3, 'past.happened', 'attempts_exhausted', 1, $4::timestamptz, $4::timestamptz + interval '90 days', $4::timestamptz, $5::timestamptz, $6)`,
      [
        id,
        eventId,
        endpointId,
        closedAt,
        letter === 'resolved' ? closedAt : null,
        letter === 'resolved' ? 'discarded' : null,
      ],
    );
  }
  return { id, eventId, endpointId };
}
