import { applyDecorators } from '@nestjs/common';
import { ApiResponse } from '@nestjs/swagger';
import { z } from 'zod';
import { problemTitles, type ProblemCode } from './problem.js';

export const problemDto = z
  .object({
    type: z.string().describe('`urn:posthorn:problem:<code>`.'),
    title: z.string(),
    status: z.int(),
    code: z
      .enum(Object.keys(problemTitles) as [ProblemCode, ...ProblemCode[]])
      .describe('Stable: programs may rely on it.'),
    detail: z.string().describe('What is wrong and what would be right.'),
    field: z.string().optional().describe('The field, header or parameter at fault.'),
    errors: z
      .array(z.object({ field: z.string().nullable(), detail: z.string() }))
      .optional()
      .describe('All faults, where there are several.'),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details.' });

const meanings: Record<number, string> = {
  400: 'The body is not JSON.',
  401: 'The API key is missing or wrong.',
  403: 'The API key belongs to another tenant.',
  404: 'There is no such thing.',
  409: 'The state does not allow it.',
  413: 'Too large.',
  415: 'Not JSON.',
  422: 'A field is not valid; `field` names it.',
  503: 'The database is away; nothing was stored.',
};

/** Documents the problems that an operation may answer. */
export function ApiProblems(...statuses: readonly number[]): MethodDecorator {
  return applyDecorators(
    ...statuses.map((status) =>
      ApiResponse({ status, description: meanings[status] ?? '', standardSchema: problemDto }),
    ),
  );
}
