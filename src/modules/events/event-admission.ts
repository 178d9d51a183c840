import { Inject, Injectable } from '@nestjs/common';
import type { Config } from '../../config/config.js';
import type { NewEvent } from '../../database/event-store.js';
import { EventTypeStore, type PublishRule } from '../../database/event-type-store.js';
import { PublishRules } from '../../database/publish-rules.js';
import { Problem } from '../../http/problems/problem.js';
import { configToken } from '../../http/tokens.js';
import { BoundedMap } from '../../payload/bounded-map.js';
import { Sandbox, SandboxRefusal, type SchemaFault, type ToValidate } from '../../payload/sandbox.js';

/** JSON text by version; null: anything fits. */
type Schemas = ReadonlyMap<string, string | null>;

const mostSchemasKept = 1_000;
/** So many events are validated by one task: its time limit is for all of them. */
const together = 25;

/** Whether an event may be published, by what is registered of its type; and the version that it says. */
@Injectable()
export class EventAdmission {
  private readonly schemas = new BoundedMap<string, Schemas>(mostSchemasKept);

  constructor(
    private readonly rules: PublishRules,
    private readonly types: EventTypeStore,
    private readonly sandbox: Sandbox,
    @Inject(configToken) private readonly config: Config,
  ) {}

  /** One per event, in order: the event with its version, or why it is refused. What was a problem before stays it. */
  async admit(events: readonly (NewEvent | Problem)[]): Promise<(NewEvent | Problem)[]> {
    const valid = events.filter((event): event is NewEvent => !(event instanceof Problem));
    const rules = await this.rules.of(valid.map(({ tenantId, type }) => ({ tenantId, name: type })));
    const judged: (NewEvent | Problem)[] = [];
    const toValidate: { readonly place: number; readonly item: ToValidate }[] = [];
    for (const [place, event] of valid.entries()) {
      const rule = rules[place] ?? null;
      const admitted = rule ? { ...event, apiVersion: event.apiVersion ?? rule.newest } : this.unregistered(event);
      judged.push(admitted);
      if (!rule?.enforce || admitted instanceof Problem) continue;
      const schema = await this.schemaOf(admitted, rule);
      if (schema instanceof Problem) judged[place] = schema;
      else if (schema !== null) toValidate.push({ place, item: { schema, data: event.data } });
    }
    const faults = await this.validate(toValidate.map(({ item }) => item));
    for (const [index, { place }] of toValidate.entries()) {
      const problem = faults[index];
      if (problem) judged[place] = problem;
    }
    return events.map((event) => (event instanceof Problem ? event : (judged.shift() ?? event)));
  }

  private unregistered(event: NewEvent): NewEvent | Problem {
    if (!this.config.catalogue.required) return event;
    return new Problem(
      422,
      'unregistered_type',
      `'${event.type}' is not a registered event type, and only those are accepted here (POSTHORN_CATALOGUE_REQUIRED): register it with PUT /v1/event-types/${event.type}`,
      { field: 'type' },
    );
  }

  private async schemaOf(
    { tenantId, type, apiVersion }: NewEvent,
    rule: PublishRule,
  ): Promise<string | null | Problem> {
    const key = `${tenantId}/${type}/${rule.revision}`;
    let schemas = this.schemas.get(key);
    if (!schemas) {
      const row = await this.types.get(tenantId, type);
      schemas = new Map(
        row?.definition.versions.map(({ version, schema }) => [
          version,
          schema === null ? null : JSON.stringify(schema),
        ]),
      );
      this.schemas.set(key, schemas);
    }
    if (schemas.size === 0) return null;
    const schema = schemas.get(apiVersion ?? '');
    if (schema !== undefined) return schema;
    const versions = [...schemas.keys()].join(', ');
    return new Problem(422, 'invalid_field', `${type} has no such version: registered are ${versions}`, {
      field: 'api_version',
    });
  }

  private async validate(items: readonly ToValidate[]): Promise<(Problem | null)[]> {
    const results: (Problem | null)[] = [];
    for (let at = 0; at < items.length; at += together)
      results.push(...(await this.validateSome(items.slice(at, at + together))));
    return results;
  }

  private async validateSome(items: readonly ToValidate[]): Promise<(Problem | null)[]> {
    try {
      const faults = await this.sandbox.validate(items);
      return faults.map((some) => (some.length === 0 ? null : mismatch(some)));
    } catch (error) {
      if (!(error instanceof SandboxRefusal)) throw error;
      if (items.length === 1) return [unusable(error)];
      // One of them is at fault: the others must not be refused with it.
      const results: (Problem | null)[] = [];
      for (const item of items) results.push(...(await this.validateSome([item])));
      return results;
    }
  }
}

function mismatch(faults: readonly SchemaFault[]): Problem {
  const errors = faults.map(({ instancePath, schemaPath, message }) => ({
    field: `data${instancePath}`,
    detail: `${message} (schema: ${schemaPath})`,
  }));
  const [first] = errors;
  return new Problem(
    422,
    'schema_mismatch',
    `The data does not fit the schema of its type: ${first?.field} ${first?.detail}`,
    {
      field: first?.field ?? 'data',
      errors,
    },
  );
}

const unusable = ({ message }: SandboxRefusal): Problem =>
  new Problem(422, 'schema_mismatch', `The data could not be checked by the schema of its type: ${message}`, {
    field: 'data',
  });
