import {
  conversionPath,
  type EventTypeDefinition,
  type EventTypeVersion,
  nameWarning,
} from '../../domain/event-catalogue.js';
import { Problem, type ProblemCode } from '../../http/problems/problem.js';
import { sandboxSteps } from '../../payload/payload-shaper.js';
import { Sandbox, SandboxRefusal } from '../../payload/sandbox.js';

/**
 * Judges what no form shows: schemas compile, examples fit, conversions make what fits the older schema. `place` is where the
 * definition stands in the request.
 * @throws {Problem} 422 that names the place.
 */
export async function checkDefinition(
  definition: EventTypeDefinition,
  place: string,
  { sandbox, maxSchemaBytes }: { readonly sandbox: Sandbox; readonly maxSchemaBytes: number },
): Promise<void> {
  const { versions, payload, pointers } = definition;
  if (
    payload === 'thin' &&
    pointers.length === 0 &&
    (versions.length === 0 || versions.some((one) => one.pointers === null))
  ) {
    throw refuse(
      'missing_field',
      `${place}pointers`,
      'A thin event type says what may leave: send pointers, such as ["/invoice_id"]',
    );
  }
  const repeated = versions.find(({ version }, index) => versions[index - 1]?.version === version);
  if (repeated)
    throw refuse('duplicate_field', `${place}versions`, `version ${repeated.version} must be given once only`);
  for (const version of versions) {
    const at = `${place}versions.${version.version}`;
    await checkSchema(version, at, sandbox, maxSchemaBytes);
    await checkExamples(version, at, sandbox);
  }
  for (const version of versions)
    await checkConversions(definition, version, `${place}versions.${version.version}`, sandbox);
}

/** What may be a mistake, in sentences. */
export function warningsOf({ name, versions }: EventTypeDefinition): string[] {
  const newest = versions.at(-1)?.version;
  const unreachable = versions.filter(
    ({ version }) => newest !== undefined && conversionPath(newest, version, versions) === null,
  );
  const named = nameWarning(name);
  return [
    ...(named === null ? [] : [named]),
    ...unreachable.map(
      ({ version }) =>
        `No conversion leads from version ${newest} of ${name} to ${version}: deliveries to endpoints that are pinned to ${version} will fail`,
    ),
  ];
}

async function checkSchema(
  { schema }: EventTypeVersion,
  at: string,
  sandbox: Sandbox,
  maxBytes: number,
): Promise<void> {
  if (schema === null) return;
  const text = JSON.stringify(schema);
  if (Buffer.byteLength(text) > maxBytes) {
    throw refuse(
      'invalid_schema',
      `${at}.schema`,
      `A schema has at most ${maxBytes} bytes (POSTHORN_CATALOGUE_MAX_SCHEMA_BYTES)`,
    );
  }
  const remote = remoteReference(schema);
  if (remote) {
    throw refuse(
      'invalid_schema',
      `${at}.schema.${remote}`,
      'A reference leads inside of the schema, such as "#/$defs/money": nothing is fetched',
    );
  }
  await sandbox.check({ schema: text }).catch((error: unknown) => {
    throw asProblem(error, 'invalid_schema', `${at}.schema`);
  });
}

async function checkExamples({ schema, examples }: EventTypeVersion, at: string, sandbox: Sandbox): Promise<void> {
  if (schema === null) return;
  for (const [index, example] of examples.entries()) {
    const place = `${at}.examples.${index}`;
    const item = { schema: JSON.stringify(schema), data: JSON.stringify(example) };
    const [faults = []] = await sandbox.validate([item]).catch((error: unknown) => {
      throw asProblem(error, 'invalid_schema', place);
    });
    const [fault] = faults;
    if (fault) {
      throw refuse(
        'schema_mismatch',
        `${place}${fault.instancePath}`,
        `The example does not fit the schema: ${fault.message} (${fault.schemaPath})`,
      );
    }
  }
}

async function checkConversions(
  definition: EventTypeDefinition,
  { version, conversions, examples }: EventTypeVersion,
  at: string,
  sandbox: Sandbox,
): Promise<void> {
  for (const [to, expression] of Object.entries(conversions)) {
    const place = `${at}.conversions.${to}`;
    if (to >= version || !definition.versions.some((one) => one.version === to)) {
      throw refuse(
        'invalid_conversion',
        place,
        `A conversion leads to an older version of the same type; ${version} is the one that it starts from`,
      );
    }
    if (examples.length === 0) {
      throw refuse(
        'invalid_conversion',
        place,
        `A conversion is checked with examples: give version ${version} at least one`,
      );
    }
    const [step] = sandboxSteps(definition, [{ from: version, to, expression }]);
    await sandbox.check({ expression }).catch((error: unknown) => {
      throw asProblem(error, 'invalid_conversion', place);
    });
    for (const [index, example] of examples.entries()) {
      if (!step) continue;
      await sandbox.convert(JSON.stringify(example), [step]).catch((error: unknown) => {
        throw asProblem(error, 'invalid_conversion', place, ` (example ${index})`);
      });
    }
  }
}

const referenceWords = new Set(['$ref', '$dynamicRef', '$recursiveRef']);

/** The place of a reference that leads elsewhere; null where there is none. */
function remoteReference(schema: unknown): string | null {
  if (typeof schema !== 'object' || schema === null) return null;
  for (const [name, value] of Object.entries(schema)) {
    if (referenceWords.has(name) && typeof value === 'string' && !value.startsWith('#')) return name;
    const inner = remoteReference(value);
    if (inner !== null) return `${name.slice(0, 64).replace(/[\p{Cc}\p{Cs}]/gu, '\ufffd')}.${inner}`;
  }
  return null;
}

function asProblem(error: unknown, code: ProblemCode, place: string, where = ''): unknown {
  return error instanceof SandboxRefusal ? refuse(code, place, `${sentence(error.message)}${where}`) : error;
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const refuse = (code: ProblemCode, field: string, detail: string): Problem => new Problem(422, code, detail, { field });
