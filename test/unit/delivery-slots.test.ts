import { describe, expect, it } from 'vitest';
import { Slots } from '../../src/delivery/slots.js';

describe('slots', () => {
  it('are bounded per key, and a full key holds nobody else up', async () => {
    const slots = new Slots({ total: 10, perKey: 1, waitMs: 60_000 });
    const first = await slots.acquire('a');
    const second = slots.acquire('a');
    expect(await slots.acquire('b')).not.toBeNull();
    first?.();
    expect(await second).not.toBeNull();
  });

  it('are bounded in total, and go to those who wait in the order of their coming', async () => {
    const slots = new Slots({ total: 1, perKey: 1, waitMs: 60_000 });
    const order: string[] = [];
    const held = await slots.acquire('a');
    const waiting = ['b', 'c', 'd'].map(async (key) => {
      const release = await slots.acquire(key);
      order.push(key);
      release?.();
    });
    held?.();
    await Promise.all(waiting);
    expect(order).toEqual(['b', 'c', 'd']);
  });

  it('are given up on after a while', async () => {
    const slots = new Slots({ total: 1, perKey: 1, waitMs: 10 });
    const held = await slots.acquire('a');
    expect(await slots.acquire('a')).toBeNull();
    held?.();
    expect(await slots.acquire('a')).not.toBeNull();
  });

  it('that are given back twice count once', async () => {
    const slots = new Slots({ total: 2, perKey: 1, waitMs: 10 });
    const held = await slots.acquire('a');
    held?.();
    held?.();
    await slots.acquire('a');
    expect(await slots.acquire('a')).toBeNull();
  });
});
