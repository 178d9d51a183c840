import { StandardSchemaValidationPipe } from '@nestjs/common';
import { Problem, printableName, type ProblemCode } from './problem.js';

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
  readonly code?: string;
  readonly keys?: readonly string[];
  /** Set by a refinement that has a code of its own. */
  readonly params?: { readonly code?: ProblemCode };
}

interface Fault {
  readonly code: ProblemCode;
  readonly field: string | null;
  readonly detail: string;
}

/** More faults than these tell nobody more. */
const maxFaults = 20;

/** Validates bodies, parameters and queries by the zod schema beside them; the first fault gives the code, all are listed. */
class ProblemValidationPipe extends StandardSchemaValidationPipe {
  protected override async validate<T>(
    value: unknown,
    ...rest: Parameters<StandardSchemaValidationPipe['validate']> extends [unknown, ...infer R] ? R : never
  ) {
    const result = await super.validate<T>(value, ...rest);
    if (result.issues) throw toProblem(result.issues, value);
    return result;
  }

  /** Nest would remove fields such as `constructor` without a word; they are refused as unknown, like all others. */
  protected override stripProtoKeys(): void {}
}

export const validation = new ProblemValidationPipe();

function toProblem(issues: readonly Issue[], value: unknown): Problem {
  const faults = issues.flatMap((issue) => toFaults(issue, value)).slice(0, maxFaults);
  const [first] = faults;
  return new Problem(422, first?.code ?? 'invalid_field', first?.detail ?? 'The request is not valid', {
    field: first?.field ?? null,
    errors: faults.map(({ field, detail }) => ({ field, detail })),
  });
}

function toFaults(issue: Issue, value: unknown): Fault[] {
  const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part));
  if (issue.code === 'unrecognized_keys') {
    return (issue.keys ?? []).map((key) => {
      const name = printableName(key);
      return { code: 'unknown_field', field: [...path, name].join('.'), detail: `'${name}' is not known here` };
    });
  }
  const missing = issue.code === 'invalid_type' && path.length > 0 && valueAt(value, path) === undefined;
  const code = issue.params?.code ?? (missing ? 'missing_field' : 'invalid_field');
  return [{ code, field: path.join('.') || null, detail: issue.message }];
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[name] : undefined,
    value,
  );
}
