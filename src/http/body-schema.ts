import type { ApiBodyOptions } from '@nestjs/swagger';
import { z } from 'zod';

type Schema = NonNullable<Extract<ApiBodyOptions, { schema: unknown }>['schema']>;

/** Documents a body that is read byte for byte, and so isn't validated by a pipe. */
export function bodySchema(schema: z.ZodType): Schema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', reused: 'inline' });
  return rest as Schema;
}
