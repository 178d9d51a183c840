import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

/** What could keep something from one run to the next: the modules of the bundle are evaluated once for all runs. */
function stateIn(path: string, text = readFileSync(path, 'utf8')): string[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
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

/** Ours, of the bundle: what the workflows import by value, and what that imports. */
function modulesFrom(path: string, found = new Set<string>()): Set<string> {
  if (found.has(path)) return found;
  found.add(path);
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ESNext, true);
  for (const statement of source.statements) {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) continue;
    const specifier = statement.moduleSpecifier;
    if (!specifier || !ts.isStringLiteral(specifier) || !specifier.text.startsWith('.')) continue;
    if (ts.isImportDeclaration(statement) && statement.importClause?.isTypeOnly) continue;
    modulesFrom(join(path, '..', specifier.text.replace(/\.js$/, '.ts')), found);
  }
  return found;
}

describe('the modules of the workflow bundle', () => {
  const modules = [...modulesFrom(join(root, 'workflows', 'index.ts'))];

  it('are all that the workflows are made of', () => {
    const workflows = readdirSync(join(root, 'workflows')).filter((name) => name.endsWith('.workflow.ts'));
    const names = modules.map((path) => relative(root, path));
    expect(names).toEqual(expect.arrayContaining(workflows.map((name) => `workflows/${name}`)));
    expect(names).toEqual(expect.arrayContaining(['workflows/support/activities.ts', 'src/domain/retry-schedule.ts']));
  });

  it.each(modules.map((path) => relative(root, path)))('keep nothing: %s', (path) => {
    expect(stateIn(join(root, path))).toEqual([]);
  });

  it('would be seen to keep something', () => {
    const text =
      'let count = 0;\nexport const seen = new Map<string, number>();\nconst list: string[] = [];\nconst fine = 1;';
    expect(stateIn('example.ts', text)).toEqual(['count', 'seen', 'list']);
  });
});
