import { describe, expect, it } from 'vitest';
import { CachingResolver } from '../../src/delivery/resolver.js';

function counting(answer: (call: number) => readonly { address: string; family: number }[]) {
  const calls: string[] = [];
  return {
    calls,
    resolve: async (hostname: string) => {
      calls.push(hostname);
      return answer(calls.length);
    },
  };
}
const one = [{ address: '192.0.2.1', family: 4 }];

describe('the resolver', () => {
  it('remembers an answer for less than 5 s, and not at all after the clock was set back', async () => {
    let now = 1_000_000;
    const { calls, resolve } = counting(() => one);
    const resolver = new CachingResolver(resolve, () => now);
    await resolver.lookup('a');
    now += 4_999;
    await resolver.lookup('a');
    expect(calls).toHaveLength(1);
    now += 1;
    await resolver.lookup('a');
    expect(calls).toHaveLength(2);
    now -= 3_600_000;
    await resolver.lookup('a');
    expect(calls).toHaveLength(3);
  });

  it('asks once for those who ask at the same time', async () => {
    const { calls, resolve } = counting(() => one);
    const resolver = new CachingResolver(resolve, () => 0);
    await Promise.all([resolver.lookup('a'), resolver.lookup('a'), resolver.lookup('b')]);
    expect(calls).toEqual(['a', 'b']);
  });

  it('remembers neither failures nor empty answers', async () => {
    const { calls, resolve } = counting((call) => (call === 1 ? [] : one));
    const resolver = new CachingResolver(resolve, () => 0);
    await expect(resolver.lookup('a')).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(resolver.lookup('a')).resolves.toEqual(one);
    expect(calls).toHaveLength(2);
  });

  it('forgets the oldest names first', async () => {
    const { calls, resolve } = counting(() => one);
    const resolver = new CachingResolver(resolve, () => 0);
    for (let n = 0; n <= 1_000; n += 1) await resolver.lookup(`host-${n}`);
    calls.length = 0;
    await resolver.lookup('host-1000');
    await resolver.lookup('host-0');
    expect(calls).toEqual(['host-0']);
  });
});
