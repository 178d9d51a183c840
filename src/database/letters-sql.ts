/**
 * A dead letter for each of these deliveries, a row of `deliveries` each, that has none of its round yet.
 * `from` names them, with its conditions; `expiryMs` is the parameter that says how long letters are kept, in milliseconds.
 */
export const insertLetters = (from: string, expiryMs: string): string => `
         insert into dead_letters (delivery_id, round, tenant_id, event_id, endpoint_id, type, reason, attempts, last_status_code,
                                   last_error, expires_at)
         select id, round, tenant_id, event_id, endpoint_id, type, reason, attempt_count, last_status_code, last_error,
                now() + ${expiryMs} * interval '1 ms'
           from ${from}
         on conflict (delivery_id, round) do nothing`;
