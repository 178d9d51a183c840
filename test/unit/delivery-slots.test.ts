import { describe, expect, it } from 'vitest';
import { Slots } from '../../src/delivery/slots.js';

const patient = { waitMs: 60_000 };
const one = (key: string) => ({ key, max: 1 });

describe('slots', () => {
  it('are bounded per key, and a full key holds nobody else up', async () => {
    const slots = new Slots({ total: 10, ...patient });
    const first = await slots.acquire(one('a'));
    const second = slots.acquire(one('a'));
    expect(await slots.acquire(one('b'))).not.toBeNull();
    first?.();
    expect(await second).not.toBeNull();
  });

  it('are bounded by what each request says of its key', async () => {
    const slots = new Slots({ total: 10, waitMs: 10 });
    expect(await slots.acquire({ key: 'a', max: 2 })).not.toBeNull();
    expect(await slots.acquire({ key: 'a', max: 1 })).toBeNull();
    expect(await slots.acquire({ key: 'a', max: 2 })).not.toBeNull();
    expect(await slots.acquire({ key: 'a', max: 2 })).toBeNull();
  });

  it('are bounded in total, and go to those who wait in the order of their coming', async () => {
    const slots = new Slots({ total: 1, ...patient });
    const order: string[] = [];
    const held = await slots.acquire(one('a'));
    const waiting = ['b', 'c', 'd'].map(async (key) => {
      const release = await slots.acquire(one(key));
      order.push(key);
      release?.();
    });
    held?.();
    await Promise.all(waiting);
    expect(order).toEqual(['b', 'c', 'd']);
  });

  it('go to the key with the fewest when all are taken', async () => {
    const slots = new Slots({ total: 3, ...patient });
    const crowd = { key: 'crowd', max: 3 };
    const held = await Promise.all([slots.acquire(crowd), slots.acquire(crowd), slots.acquire(crowd)]);
    const order: string[] = [];
    const wait = async (key: string) => {
      await slots.acquire({ key, max: 3 });
      order.push(key);
    };
    const waiting = [wait('crowd'), wait('crowd'), wait('quiet')];
    for (const release of held) release?.();
    await Promise.all(waiting);
    expect(order).toEqual(['quiet', 'crowd', 'crowd']);
  });

  it('are given up on after a while, and then come free for others', async () => {
    const slots = new Slots({ total: 1, waitMs: 10 });
    const held = await slots.acquire(one('a'));
    expect(await slots.acquire(one('a'))).toBeNull();
    held?.();
    expect(await slots.acquire(one('a'))).not.toBeNull();
  });

  it('that are given back twice count once', async () => {
    const slots = new Slots({ total: 2, waitMs: 10 });
    const held = await slots.acquire(one('a'));
    held?.();
    held?.();
    await slots.acquire(one('a'));
    expect(await slots.acquire(one('a'))).toBeNull();
  });
});
