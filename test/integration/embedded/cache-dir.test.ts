import { writeFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cacheDirectory } from '../../../src/embedded/cache-dir.js';
import { makeTestDataDir } from '../../support/engines.js';

const root = makeTestDataDir();
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('the cache of fetched programs', () => {
  it("is the user's cache directory", () => {
    expect(cacheDirectory({ HOME: root }, '/data')).toBe(join(root, '.cache', 'posthorn'));
    expect(cacheDirectory({ HOME: '/elsewhere', XDG_CACHE_HOME: join(root, 'xdg') }, '/data')).toBe(
      join(root, 'xdg', 'posthorn'),
    );
  });

  it('is in the data directory where there is no home that can be written', () => {
    writeFileSync(join(root, 'file'), '');
    expect(cacheDirectory({}, '/data')).toBe('/data/cache');
    expect(cacheDirectory({ HOME: join(root, 'file', 'home') }, '/data')).toBe('/data/cache');
  });
});
