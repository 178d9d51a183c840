import { describe, expect, it } from 'vitest';
import { createProgress, withProgress } from '../../../src/embedded/progress.js';

function recorder(isTTY: boolean) {
  let text = '';
  return { isTTY, columns: 40, write: (chunk: string) => void (text += chunk), read: () => text };
}

describe('progress', () => {
  it('is plain lines where no terminal listens', async () => {
    const stream = recorder(false);
    const progress = createProgress(stream);
    const line = progress.start('Fetching');
    line.update('unpacking');
    progress.note('by the way');
    line.done();
    line.done();
    const seconds = String.raw`\(\d\.\d s\)`;
    expect(stream.read()).toMatch(
      new RegExp(`^… Fetching\n… Fetching: unpacking ${seconds}\n {2}by the way\n✔ Fetching ${seconds}\n$`),
    );
    expect(stream.read()).not.toContain('\u001B');
  });

  it('rewrites one line on a terminal, and cuts it to its width', () => {
    const stream = recorder(true);
    const line = createProgress(stream).start('Fetching '.repeat(10));
    expect(stream.read().startsWith('\r\u001B[2K… Fetching')).toBe(true);
    expect(stream.read()).not.toContain('\n');
    expect(stream.read().length).toBeLessThan(50);
    line.fail('no network');
    expect(stream.read()).toMatch(/✖ Fetching.*: no network \(\d\.\d s\)\n$/);
  });

  it('ends the line of a step with its outcome', async () => {
    const stream = recorder(false);
    const progress = createProgress(stream);
    expect(await withProgress(progress, 'Good', async () => 42)).toBe(42);
    await expect(withProgress(progress, 'Bad', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(stream.read()).toMatch(/✔ Good.*\n[^]*✖ Bad/);
  });
});
