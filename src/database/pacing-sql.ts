import { riseSeconds } from '../domain/pacing.js';

/** Requests a second that endpoint `e` takes: what its owner set, and what it allowed itself; null: no limit. */
export const ratePerSecond = `least(e.rate_limit_per_second::float8, e.allowed_rate_per_minute / 60.0::float8)`;

export const isRising = `(e.pace = 'rising' and e.rising_since > now() - interval '${riseSeconds} s')`;

/** Slots are given out so far ahead, in milliseconds. What finds none within that time is held, so that nobody waits behind it. */
export const slotHorizonMs = 3_000;

/** A fresh delivery for endpoint `e` has to wait for its turn: the `nth` of its transaction. */
export function mustWait(nth: string): string {
  return `(e.pace = 'probing' or ${isRising} or (
    (e.rate_limit_per_second is not null or e.allowed_rate_per_minute is not null) and (
      ${nth} > ceil(${ratePerSecond})
      or exists (select from endpoint_paces p where p.endpoint_id = e.id and p.next_slot_at > now() + interval '1 s')
      or exists (select from deliveries h where h.endpoint_id = e.id and h.status = 'held'))))`;
}

/** A delivery to endpoint `e` has to ask for its turn before it is sent. */
export const mustAsk = `(e.pace = 'probing' or ${isRising} or e.rate_limit_per_second is not null or e.allowed_rate_per_minute is not null)`;
