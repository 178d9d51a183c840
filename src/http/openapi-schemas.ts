import { z } from 'zod';

export type JsonSchema = Record<string, unknown>;

export interface ConvertedSchema {
  readonly schema: JsonSchema;
  readonly components: Record<string, JsonSchema>;
}

const registered = new Set<z.ZodType>();

/** Refers to a schema that no route parameter or answer leads to: bodies that are read byte for byte, and problems. */
export function referTo(schema: z.ZodType): { readonly $ref: string } {
  registered.add(schema);
  return { $ref: `#/components/schemas/${schema.meta()?.id}` };
}

/** The schemas that {@link referTo} was asked for, with those they refer to. */
export function referredComponents(): Record<string, JsonSchema> {
  return Object.assign({}, ...[...registered].map((schema) => toOpenApi(schema, 'input').components)) as Record<
    string,
    JsonSchema
  >;
}

/** A zod schema as OpenAPI 3.0 has it. One with an id becomes a component, wherever it stands; `meta({ openapi })` overrides. */
export function toOpenApi(schema: z.ZodType, io: 'input' | 'output'): ConvertedSchema {
  // Inside another one, since only nested schemas are moved to the definitions.
  const json = z.toJSONSchema(z.object({ root: schema }), {
    target: 'openapi-3.0',
    io,
    reused: 'inline',
    override: ({ jsonSchema }) => {
      const target = jsonSchema as JsonSchema;
      const { openapi } = target;
      delete target['openapi'];
      // Readers of answers must expect fields that are added later.
      if (io === 'output') delete target['additionalProperties'];
      // zod bounds every integer by what a double holds exactly; nobody needs to read that.
      if (target['maximum'] === Number.MAX_SAFE_INTEGER) delete target['maximum'];
      if (target['minimum'] === Number.MIN_SAFE_INTEGER) delete target['minimum'];
      if (openapi === undefined) return;
      for (const key of ['type', 'pattern', 'anyOf', 'enum', 'default']) delete target[key];
      Object.assign(target, openapi);
    },
  }) as JsonSchema;
  const definitions = (json['$defs'] ?? json['definitions'] ?? {}) as Record<string, JsonSchema>;
  const { root } = json['properties'] as { root: JsonSchema };
  return withComponentRefs({ schema: root, components: definitions });
}

/** References to definitions become references to components, and ids, which named them, go. */
function withComponentRefs(converted: ConvertedSchema): ConvertedSchema {
  const text = JSON.stringify(converted).replace(/#\/(?:\$defs|definitions)\//g, '#/components/schemas/');
  const { schema, components } = JSON.parse(text) as ConvertedSchema;
  for (const component of Object.values(components)) delete component['id'];
  return { schema, components };
}
