import { expect, it, vi } from 'vitest';
import { startApi } from '../../support/api.js';

it('/readyz reads the last report once in two seconds at most, however often it is asked', async () => {
  const posthorn = await startApi();
  const lastReport = vi.spyOn(posthorn.core.reconciliation, 'lastReport');
  const clock = vi.spyOn(Date, 'now');
  try {
    const startedAt = performance.timeOrigin + performance.now();
    clock.mockReturnValue(startedAt);
    for (let n = 0; n < 20; n += 1) expect((await posthorn.api.get('/readyz')).body.reconciliation).toBeNull();
    expect(lastReport).toHaveBeenCalledTimes(1);
    clock.mockReturnValue(startedAt + 2_000);
    await posthorn.api.get('/readyz');
    expect(lastReport).toHaveBeenCalledTimes(2);
  } finally {
    clock.mockRestore();
    await posthorn.stop();
  }
});
