import { QueryFailedError } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { NoConnectionError } from '../../src/database/database-errors.js';
import { Group } from '../../src/database/group.js';

const refused = (code: string) => new QueryFailedError('insert', [], Object.assign(new Error('refused'), { code }));

/** In a busy time a group waits for company for 2 ms. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

/** A group whose statements end when the test says so. */
function heldGroup(options: { most?: number; atOnce?: number; keyOf?: (item: string) => string } = {}) {
  const statements: { items: readonly string[]; succeed: () => void; fail: (error: Error) => void }[] = [];
  const group = new Group<string, string>(
    (items) =>
      new Promise((resolve, reject) => {
        statements.push({ items, succeed: () => resolve(items.map((item) => `${item}!`)), fail: reject });
      }),
    { most: 100, atOnce: 1, ...options },
  );
  return { group, statements };
}

describe('a group', () => {
  it('puts what one turn of the event loop brings into one statement, and gives each its own result', async () => {
    const { group, statements } = heldGroup();
    const results = Promise.all(['a', 'b', 'c'].map((item) => group.add(item)));
    await settled();
    expect(statements.map(({ items }) => items)).toEqual([['a', 'b', 'c']]);
    statements[0]!.succeed();
    expect(await results).toEqual(['a!', 'b!', 'c!']);
  });

  it('collects what comes while a statement is on its way, and no more than fits', async () => {
    const { group, statements } = heldGroup({ most: 2 });
    const all = [group.add('a')];
    await settled();
    all.push(group.add('b'), group.add('c'), group.add('d'));
    await settled();
    expect(statements.map(({ items }) => items)).toEqual([['a']]);
    statements[0]!.succeed();
    await settled();
    expect(statements[1]!.items).toEqual(['b', 'c']);
    statements[1]!.succeed();
    await settled();
    statements[2]!.succeed();
    expect(await Promise.all(all)).toEqual(['a!', 'b!', 'c!', 'd!']);
  });

  it('lets no two items of one key share a statement', async () => {
    const { group, statements } = heldGroup({ keyOf: (item) => item[0]! });
    const all = ['a1', 'a2', 'b1'].map((item) => group.add(item));
    await settled();
    expect(statements[0]!.items).toEqual(['a1', 'b1']);
    statements[0]!.succeed();
    await settled();
    expect(statements[1]!.items).toEqual(['a2']);
    statements[1]!.succeed();
    await Promise.all(all);
  });

  it.each(['23505', '22P02', '40P01'])('lets one bad item fail alone (SQLSTATE %s)', async (code) => {
    const group = new Group<string, string>(
      async (items) => {
        if (items.includes('bad')) throw refused(code);
        return items.map((item) => `${item}!`);
      },
      { most: 100, atOnce: 1 },
    );
    const results = await Promise.allSettled(['a', 'bad', 'b'].map((item) => group.add(item)));
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value : 'failed'))).toEqual([
      'a!',
      'failed',
      'b!',
    ]);
  });

  it('tries nothing again where the database is away: each caller is told at once', async () => {
    const { group, statements } = heldGroup();
    const results = Promise.allSettled(['a', 'b'].map((item) => group.add(item)));
    await settled();
    statements[0]!.fail(new NoConnectionError(new Error('refused')));
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(statements).toHaveLength(1);
  });
});
