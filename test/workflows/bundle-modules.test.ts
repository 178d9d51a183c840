import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, inject, it } from 'vitest';
import '../support/provided.js';

const root = join(import.meta.dirname, '..', '..');

/** What could keep something from one run to the next: the modules of the bundle are evaluated once for all runs. */
function stateIn(text: string): string[] {
  const source = ts.createSourceFile('module.ts', text, ts.ScriptTarget.ESNext, true);
  return source.statements.flatMap((statement) => {
    if (!ts.isVariableStatement(statement)) return [];
    const { flags, declarations } = statement.declarationList;
    return declarations.flatMap((declaration) => {
      const value = declaration.initializer?.getText() ?? '';
      const isState = !(flags & ts.NodeFlags.Const) || /^new (Map|Set|WeakMap|WeakSet|Array)\b|^\[\]|^\{\}/.test(value);
      return isState ? [declaration.name.getText()] : [];
    });
  });
}

/** Ours, as the bundle names them. */
const modules = [
  ...readFileSync(inject('workflowBundle'), 'utf8').matchAll(
    /^\/\*{3}\/ "\.\/((?:src|workflows|activities)\/.+\.ts)"/gm,
  ),
].map(([, path]) => path!);

describe('the modules of the workflow bundle', () => {
  it('are known', () => {
    expect(modules).toEqual(
      expect.arrayContaining([
        'workflows/deliver.workflow.ts',
        'workflows/support/activities.ts',
        'src/domain/retry-schedule.ts',
      ]),
    );
  });

  it.each(modules)('keep nothing: %s', (path) => {
    expect(stateIn(readFileSync(join(root, path), 'utf8'))).toEqual([]);
  });

  it('would be seen to keep something', () => {
    const text =
      'let count = 0;\nexport const seen = new Map<string, number>();\nconst list: string[] = [];\nconst fine = 1;';
    expect(stateIn(text)).toEqual(['count', 'seen', 'list']);
  });
});
