import type { RunningPosthorn } from './posthorn.js';

/** So many deliveries to one endpoint that were given up, without a workflow ever having run for them. Returns their ids. */
export async function makeLetters(
  { api, core }: Pick<RunningPosthorn, 'api' | 'core'>,
  endpointId: string,
  type: string,
  count: number,
): Promise<string[]> {
  await core.db.query(`update endpoints set status = 'paused' where id = $1`, [endpointId]);
  for (let left = count; left > 0; left -= 1_000) {
    const events = Array.from({ length: Math.min(left, 1_000) }, (_, n) => ({ type, data: { n } }));
    const answer = await api.post('/v1/events/batch', { events });
    if (answer.body.accepted !== events.length) throw new Error(`not all were accepted: ${answer.text}`);
  }
  const rows = await core.db.query<{ id: string }[]>(
    `with d as (
       update deliveries set status = 'failed', reason = 'attempts_exhausted', held_since = null where endpoint_id = $1 and status = 'held' returning *
     ), l as (
       insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, expires_at, announced_at)
       select id, round, tenant_id, event_id, endpoint_id, type, reason, 6, now() + interval '90 days', now() from d)
     select id from d order by id`,
    [endpointId],
  );
  await core.db.query(`update endpoints set status = 'active' where id = $1`, [endpointId]);
  return rows.map(({ id }) => id);
}
