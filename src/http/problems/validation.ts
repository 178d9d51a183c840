import { StandardSchemaValidationPipe } from '@nestjs/common';
import { Problem, type ProblemCode } from './problem.js';

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
  readonly code?: string;
  readonly keys?: readonly string[];
  /** Set by a refinement that has a code of its own. */
  readonly params?: { readonly code?: ProblemCode };
}

/** Validates bodies, parameters and queries by the zod schema beside them; the first fault gives the code, all are listed. */
export const validation = new StandardSchemaValidationPipe({
  exceptionFactory: (issues) => toProblem(issues),
});

function toProblem(issues: readonly Issue[]): Problem {
  const errors = issues.flatMap((issue) => {
    const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    if (issue.code === 'unrecognized_keys') {
      return (issue.keys ?? []).map((key) => ({
        field: path ? `${path}.${key}` : key,
        detail: `'${key}' is not a field of this request`,
        code: 'unknown_field' as const,
      }));
    }
    return [{ field: path || null, detail: issue.message, code: issue.params?.code ?? ('invalid_field' as const) }];
  });
  const [first] = errors;
  return new Problem(422, first?.code ?? 'invalid_field', first?.detail ?? 'The request is not valid', {
    field: first?.field ?? null,
    errors: errors.map(({ field, detail }) => ({ field, detail })),
  });
}
