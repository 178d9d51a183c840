import { z } from 'zod';
import type { EventTypeRow } from '../../database/event-type-store.js';
import {
  type EventTypeDefinition,
  eventTypeNamePattern,
  type EventTypeVersion,
  isVersion,
} from '../../domain/event-catalogue.js';
import { maxEventTypeLength } from '../../domain/event-type.js';
import { maxPointerLength, maxPointers, parsePointer } from '../../domain/json-pointer.js';
import { listOf, pageQuery, tenantParameter } from '../../http/page.dto.js';
import { freeText, timestamp } from '../../http/text.dto.js';

export const maxVersions = 50;
export const maxExamples = 10;
export const maxConversionLength = 16_384;
const maxDescriptionLength = 2_000;

export const nameRule = `the name of an event type is dotted and lower case, at least two words of a-z 0-9 _ -, at most ${maxEventTypeLength} characters, such as invoice.paid`;
const versionRule = 'a version is a date, such as 2026-01-31';
const pointersRule = `pointers is a list of at most ${maxPointers} JSON Pointers (RFC 6901) of at most ${maxPointerLength} characters, such as ["/invoice_id"]`;
const conversionsRule = `conversions is an object of JSONata expressions of at most ${maxConversionLength} characters by the older version that each makes, such as {"2025-01-31": "{\\"amount\\": amount.value}"}`;

export const isEventTypeName = (name: string): boolean =>
  name.length <= maxEventTypeLength && eventTypeNamePattern.test(name);

const pointers = z
  .array(
    z.string({ error: pointersRule }).refine((text) => parsePointer(text) !== null, pointersRule),
    { error: pointersRule },
  )
  .max(maxPointers, pointersRule);

const flag = (name: string) => z.boolean({ error: `${name} is true or false` }).nullish();

/** Judged as it came: a schema of records would drop a name such as `__proto__` without a word. */
const conversions = z.unknown().superRefine((given, context) => {
  if (given === undefined || given === null) return;
  const entries = typeof given === 'object' && !Array.isArray(given) ? Object.entries(given) : null;
  const good = entries?.every(
    ([version, text]) =>
      isVersion(version) &&
      typeof text === 'string' &&
      text.trim() !== '' &&
      text.length <= maxConversionLength &&
      !/\p{Cs}/u.test(text),
  );
  if (!good) context.addIssue({ code: 'custom', message: conversionsRule });
}) as unknown as z.ZodType<Record<string, string>>;

const schemaRule = 'schema is a JSON Schema (2020-12): an object, or true for anything';
const jsonSchema = z.unknown().superRefine((given, context) => {
  const good =
    given === undefined ||
    given === null ||
    typeof given === 'boolean' ||
    (typeof given === 'object' && !Array.isArray(given));
  if (!good) context.addIssue({ code: 'custom', message: schemaRule });
});

const versionBody = z
  .strictObject({
    version: z.string({ error: versionRule }).refine(isVersion, versionRule).meta({
      description: 'The date that names the version.',
      example: '2026-01-31',
    }),
    description: freeText('description', maxDescriptionLength)
      .nullish()
      .describe(`What changed: at most ${maxDescriptionLength} characters.`),
    schema: jsonSchema.optional().meta({
      openapi: { type: 'object', nullable: true },
      description:
        'A JSON Schema, 2020-12, of at most POSTHORN_CATALOGUE_MAX_SCHEMA_BYTES bytes. A `$ref` leads inside of it: `#/$defs/…`. Null or left out: anything fits.',
      example: { type: 'object', required: ['invoice_id'], properties: { invoice_id: { type: 'string' } } },
    }),
    examples: z
      .array(z.any(), { error: 'examples is a list of JSON values that fit the schema' })
      .max(maxExamples, `a version has at most ${maxExamples} examples`)
      .nullish()
      .meta({
        description: `Data as it may be, at most ${maxExamples}. Each has to fit the schema, and conversions are tried on them.`,
        example: [{ invoice_id: 'inv_1' }],
      }),
    pointers: pointers.nullish().meta({
      description: 'What may leave of this version where the type is `thin`. Null or left out: the type’s `pointers`.',
      example: ['/invoice_id'],
    }),
    conversions: conversions.nullish().meta({
      openapi: {
        type: 'object',
        additionalProperties: { type: 'string', maxLength: maxConversionLength },
        nullable: true,
      },
      description: `JSONata expressions that turn this version’s data into an older version’s, by that version; at most ${maxConversionLength} characters each. They need \`examples\`, by which they are checked.`,
      example: { '2025-01-31': '{"invoice": invoice_id}' },
    }),
  })
  .meta({ id: 'NewEventTypeVersion', description: 'A dated version of an event type’s data.' });

const bodyFields = {
  description: freeText('description', maxDescriptionLength)
    .nullish()
    .meta({
      description: `For people: at most ${maxDescriptionLength} characters.`,
      example: 'An invoice was paid in full.',
    }),
  payload: z.enum(['full', 'thin'], { error: 'payload is full or thin, or null for full' }).nullish().meta({
    description: '`thin`: only what `pointers` name leaves. `full`, the default: all of it.',
    example: 'thin',
  }),
  pointers: pointers.nullish().meta({
    description: `What may leave of a \`thin\` type’s data: at most ${maxPointers} JSON Pointers (RFC 6901) of at most ${maxPointerLength} characters. Where there is nothing, nothing is sent.`,
    example: ['/invoice_id'],
  }),
  enforce: flag('enforce').describe(
    '`true`: an event that does not fit the schema of its version is refused. Default: false.',
  ),
  deprecated: flag('deprecated').describe(
    '`true`: nobody should begin to use it. It is delivered as before. Default: false.',
  ),
  deprecation: freeText('deprecation', maxDescriptionLength)
    .nullish()
    .describe(`What to use instead, and until when: at most ${maxDescriptionLength} characters.`),
  versions: z
    .array(versionBody, { error: 'versions is a list of dated versions, such as [{"version": "2026-01-31"}]' })
    .max(maxVersions, `an event type has at most ${maxVersions} versions`)
    .nullish()
    .describe(`Its dated versions, at most ${maxVersions}, in any order.`),
};

const objectRule = 'Send a JSON object such as {"description": "An invoice was paid", "versions": []}';

export const newEventTypeDto = z
  .strictObject(bodyFields, { error: (issue) => (issue.code === 'invalid_type' ? objectRule : undefined) })
  .meta({ id: 'NewEventType', description: 'An event type. What is null or left out has its default.' });
export type NewEventTypeBody = z.infer<typeof newEventTypeDto>;

const namedEventType = z
  .strictObject({
    name: z.string({ error: nameRule }).refine(isEventTypeName, nameRule).meta({
      description: 'Dotted and lower case; a fact in the past tense.',
      example: 'invoice.paid',
    }),
    ...bodyFields,
  })
  .meta({ id: 'CatalogueEventType', description: 'An event type in a catalogue file.' });
export type NamedEventTypeBody = z.infer<typeof namedEventType>;

export const catalogueFileDto = z
  .strictObject(
    {
      event_types: z
        .array(namedEventType, { error: 'event_types is a list of event types, such as [{"name": "invoice.paid"}]' })
        .describe('All event types of the file.'),
    },
    {
      error: (issue) => (issue.code === 'invalid_type' ? 'Send a JSON object such as {"event_types": []}' : undefined),
    },
  )
  .meta({ id: 'CatalogueFile', description: 'A catalogue of event types, as one file.' });
export type CatalogueFile = z.infer<typeof catalogueFileDto>;

const yesOrNo = (name: string) =>
  z
    .enum(['true', 'false'], { error: `${name} is true or false` })
    .default('false')
    .transform((text) => text === 'true');

export const importQuery = z.strictObject({
  dry_run: yesOrNo('dry_run').meta({
    openapi: { type: 'boolean', default: false },
    description: '`true`: change nothing, and say what would change.',
  }),
  prune: yesOrNo('prune').meta({
    openapi: { type: 'boolean', default: false },
    description: '`true`: event types that are not in the file are removed. Else they stay.',
  }),
  tenant_id: tenantParameter,
});
export type ImportQuery = z.infer<typeof importQuery>;

export const importReportDto = z
  .object({
    dry_run: z.boolean().describe('Nothing was changed.'),
    created: z.array(z.string()).describe('New ones.'),
    changed: z
      .array(
        z
          .object({
            name: z.string().meta({ description: 'The event type.', example: 'invoice.paid' }),
            changes: z
              .array(z.string())
              .meta({ description: 'What differs.', example: ['description', 'versions.2026-01-31.schema'] }),
          })
          .meta({ id: 'ChangedEventType', description: 'An event type that differs from the file.' }),
      )
      .describe('Those that differ.'),
    unchanged: z.array(z.string()).describe('Those that are in the file as they are here.'),
    removed: z.array(z.string()).describe('With `prune=true`: those that are not in the file.'),
    kept: z.array(z.string()).describe('Without `prune`: those that are not in the file, and stay.'),
    warnings: z.array(z.string()).describe('What may be a mistake.'),
  })
  .meta({ id: 'ImportReport', description: 'What an import changed, or would change.' });

const shared = {
  name: z.string().meta({ description: 'Its name.', example: 'invoice.paid' }),
  tenant_id: z.string().meta({ description: 'The tenant whose events it describes.', example: 'default' }),
  description: z.string().nullable().describe('As given, or null.'),
  payload: z.enum(['full', 'thin']).describe('Whether all of the data leaves, or what `pointers` name.'),
  pointers: z.array(z.string()).describe('What may leave of a `thin` type’s data.'),
  enforce: z.boolean().describe('Whether an event that does not fit its schema is refused.'),
  deprecated: z.boolean().describe('Whether nobody should begin to use it.'),
  deprecation: z.string().nullable().describe('What to use instead, or null.'),
};
const times = {
  created_at: timestamp().describe('When it was registered.'),
  updated_at: timestamp().describe('When it last changed.'),
};

export const eventTypeDto = z
  .object({
    ...shared,
    versions: z
      .array(
        z
          .object({
            version: z.string().meta({ description: 'The date that names it.', example: '2026-01-31' }),
            description: z.string().nullable().describe('What changed, or null.'),
            schema: z
              .any()
              .meta({ description: 'The JSON Schema, or null for anything.', example: { type: 'object' } }),
            examples: z.array(z.any()).describe('Data as it may be.'),
            pointers: z.array(z.string()).nullable().describe('What may leave; null: the type’s `pointers`.'),
            conversions: z.record(z.string(), z.string()).meta({
              openapi: { additionalProperties: { type: 'string' } },
              description: 'JSONata, by the older version that it makes.',
            }),
          })
          .meta({ id: 'EventTypeVersion', description: 'A dated version of an event type’s data.' }),
      )
      .describe('Oldest first.'),
    warnings: z
      .array(z.string())
      .describe('What may be a mistake: a name that reads as a command, a version that leads nowhere.'),
    ...times,
  })
  .meta({ id: 'EventType', description: 'An event type with its versions.' });

export const eventTypeListDto = listOf(
  z
    .object({
      ...shared,
      versions: z
        .array(z.string())
        .meta({ description: 'Names of its versions, oldest first.', example: ['2026-01-31'] }),
      ...times,
    })
    .meta({ id: 'EventTypeSummary', description: 'An event type, without schemas.' }),
).meta({ id: 'EventTypeList', description: 'A page of event types.' });

export const eventTypeQuery = z.strictObject(pageQuery);
export type EventTypeQuery = z.infer<typeof eventTypeQuery>;

/** With every field in one order, so that equal definitions are equal texts. */
export function toDefinition(name: string, body: NewEventTypeBody): EventTypeDefinition {
  return {
    name,
    description: body.description ?? null,
    payload: body.payload ?? 'full',
    pointers: body.pointers ?? [],
    enforce: body.enforce ?? false,
    deprecated: body.deprecated ?? false,
    deprecation: body.deprecation ?? null,
    versions: (body.versions ?? [])
      .map((one): EventTypeVersion => ({
        version: one.version,
        description: one.description ?? null,
        schema: one.schema === undefined || one.schema === true ? null : one.schema,
        examples: one.examples ?? [],
        pointers: one.pointers ?? null,
        conversions: Object.fromEntries(Object.entries(one.conversions ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))),
      }))
      .sort((a, b) => (a.version < b.version ? -1 : 1)),
  };
}

export function toEventType(
  tenantId: string,
  { definition, created_at, updated_at }: EventTypeRow,
  warnings: readonly string[],
): z.infer<typeof eventTypeDto> {
  const { versions, ...fields } = definition;
  return {
    ...sharedFields(tenantId, fields),
    versions: versions.map((one) => ({
      ...one,
      examples: [...one.examples],
      pointers: one.pointers && [...one.pointers],
      conversions: { ...one.conversions },
    })),
    warnings: [...warnings],
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  };
}

export function toSummary(tenantId: string, { definition, created_at, updated_at }: EventTypeRow) {
  const { versions, ...fields } = definition;
  return {
    ...sharedFields(tenantId, fields),
    versions: versions.map(({ version }) => version),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  };
}

function sharedFields(tenantId: string, { name, ...rest }: Omit<EventTypeDefinition, 'versions'>) {
  return { name, tenant_id: tenantId, ...rest, pointers: [...rest.pointers] };
}
