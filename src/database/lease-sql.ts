/** Who wasn't seen for this long holds nothing any more: well above a busy moment, well below what anybody wants to wait. */
export const leaseMs = 4_000;
export const leaseRenewalMs = 500;

/**
 * The holder lives. Just after a start of Postgres every holder counts as living: nobody could have renewed anything.
 * False where nobody holds it.
 */
export function holderLives(holder: string): string {
  return `(${holder} is not null and exists (
    select from lease_holders h where h.id = ${holder}
       and (h.seen_at > clock_timestamp() - interval '${leaseMs} ms' or pg_postmaster_start_time() > clock_timestamp() - interval '${leaseMs} ms')))`;
}
