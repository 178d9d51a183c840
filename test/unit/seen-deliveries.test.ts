import { describe, expect, it } from 'vitest';
import { SeenDeliveries } from '../../examples/receivers/node/seen-deliveries.js';

const hour = 3_600_000;

describe('the deliveries that were seen', () => {
  it('are remembered for at least 24 h after their last request, whatever was asked for', () => {
    let now = 0;
    const seen = new SeenDeliveries({ keepMs: 1, now: () => now });
    expect(seen.note('whd_1').isNew).toBe(true);
    now = 23 * hour;
    expect(seen.note('whd_1').isNew).toBe(false);
    now += 23 * hour;
    expect(seen.note('whd_1')).toMatchObject({ isNew: false, entry: { requests: 3 } });
    now += 24 * hour;
    expect(seen.note('whd_1').isNew).toBe(true);
  });

  it('are forgotten then, so that memory stays bounded', () => {
    let now = 0;
    const seen = new SeenDeliveries({ keepMs: 24 * hour, now: () => now });
    for (let i = 0; i < 1_000; i++) seen.note(`whd_${i}`);
    now = 12 * hour;
    seen.note('whd_0');
    now = 24 * hour;
    seen.note('whd_new');
    expect(seen.latest(10).map(({ id }) => id)).toEqual(['whd_0', 'whd_new']);
  });

  it('never exceed their number, and the oldest go first', () => {
    const seen = new SeenDeliveries({ maxEntries: 3, now: () => 0 });
    for (const id of ['a', 'b', 'a', 'c', 'd', 'e']) seen.note(id);
    expect(seen.latest(10).map(({ id }) => id)).toEqual(['c', 'd', 'e']);
  });
});
