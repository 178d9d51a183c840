import { expect, it } from 'vitest';
import { CallLimiter } from '../../src/modules/endpoints/call-limiter.js';

/** A call that goes on until it is ended. */
class SlowCall {
  end: () => void = () => undefined;
  readonly #ended = new Promise<void>((resolve) => (this.end = resolve));
  call = (): Promise<string> => this.#ended.then(() => 'done');
}

it('lets one call a second through, for each endpoint', async () => {
  let now = 10_000;
  const limiter = new CallLimiter(() => now);
  const call = async () => now;
  expect(await limiter.run('we_a', call)).toBe(10_000);
  now += 999;
  expect(await limiter.run('we_a', call)).toBeNull();
  expect(await limiter.run('we_b', call)).toBe(10_999);
  now += 1;
  expect(await limiter.run('we_a', call)).toBe(11_000);
});

it('lets four calls at once through, also where they take long', async () => {
  let now = 10_000;
  const limiter = new CallLimiter(() => now);
  const slow = [new SlowCall(), new SlowCall(), new SlowCall(), new SlowCall()];
  const running = slow.map(({ call }) => {
    now += 60_000;
    return limiter.run('we_a', call);
  });
  now += 60_000;
  expect(await limiter.run('we_a', async () => 'fifth')).toBeNull();
  expect(await limiter.run('we_b', async () => 'other')).toBe('other');
  slow[0]!.end();
  expect(await running[0]).toBe('done');
  expect(await limiter.run('we_a', async () => 'fifth')).toBe('fifth');
  for (const { end } of slow) end();
  expect(await Promise.all(running)).toEqual(['done', 'done', 'done', 'done']);
});

it('gives its place back when a call fails', async () => {
  let now = 10_000;
  const limiter = new CallLimiter(() => now);
  for (let n = 0; n < 6; n++) {
    now += 1_000;
    await expect(limiter.run('we_a', () => Promise.reject(new Error('away')))).rejects.toThrow('away');
  }
  now += 1_000;
  expect(await limiter.run('we_a', async () => 'back')).toBe('back');
});
