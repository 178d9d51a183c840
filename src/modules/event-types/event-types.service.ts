import { Inject, Injectable } from '@nestjs/common';
import type { Config } from '../../config/config.js';
import { EventTypeStore, type EventTypeRow } from '../../database/event-type-store.js';
import { PublishRules } from '../../database/publish-rules.js';
import type { EventTypeDefinition } from '../../domain/event-catalogue.js';
import { numbered, toPageRequest } from '../../http/page.dto.js';
import { notFound, Problem } from '../../http/problems/problem.js';
import { configToken } from '../../http/tokens.js';
import { Sandbox } from '../../payload/sandbox.js';
import { cataloguePage } from './catalogue-page.js';
import { changesOf } from './catalogue-changes.js';
import { checkDefinition, warningsOf } from './check-definition.js';
import {
  type CatalogueFile,
  type EventTypeQuery,
  type ImportQuery,
  isEventTypeName,
  nameRule,
  type NewEventTypeBody,
  toDefinition,
  toEventType,
  toSummary,
} from './event-types.dto.js';

@Injectable()
export class EventTypesService {
  constructor(
    private readonly types: EventTypeStore,
    private readonly rules: PublishRules,
    private readonly sandbox: Sandbox,
    @Inject(configToken) private readonly config: Config,
  ) {}

  async list(tenantId: string, query: EventTypeQuery) {
    const page = await this.types.list(tenantId, toPageRequest(query, { positions: numbered }));
    return {
      data: page.rows.map((row) => toSummary(tenantId, row)),
      next_cursor: page.nextCursor,
      prev_cursor: page.prevCursor,
    };
  }

  async get(tenantId: string, name: string) {
    const row = isEventTypeName(name) ? await this.types.get(tenantId, name) : null;
    if (!row) throw notFound('event type', name);
    return toEventType(tenantId, row, warningsOf(row.definition));
  }

  /** Registers the type, or puts another definition in its place. */
  async put(tenantId: string, name: string, body: NewEventTypeBody) {
    if (!isEventTypeName(name)) throw new Problem(422, 'invalid_field', nameRule, { field: 'name' });
    const definition = toDefinition(name, body);
    const before = await this.types.get(tenantId, name);
    const same = before !== null && changesOf(before.definition, definition).length === 0;
    if (!same) {
      await this.check(definition, '');
      await this.store(tenantId, [definition]);
    }
    const answer = await this.get(tenantId, name);
    return { created: before === null, answer };
  }

  async remove(tenantId: string, name: string): Promise<void> {
    const removed = await this.types.change(tenantId, (tx) => this.types.remove(tx, tenantId, [name]));
    if (removed === 0) throw notFound('event type', name);
    this.rules.forget(tenantId, [name]);
  }

  /** The catalogue as one file, as text: the same for the same catalogue. */
  async export(tenantId: string): Promise<string> {
    const rows = await this.types.all(tenantId);
    return `${JSON.stringify({ event_types: rows.map(({ definition }) => definition) }, null, 2)}\n`;
  }

  /** The catalogue as HTML. */
  async page(tenantId: string): Promise<string> {
    return cataloguePage(
      tenantId,
      (await this.types.all(tenantId)).map(({ definition }) => definition),
    );
  }

  /** Brings the catalogue to what the file says: all of it, or, where one type is at fault, nothing. */
  async import(tenantId: string, file: CatalogueFile, { dry_run: dryRun, prune }: ImportQuery) {
    const wanted = file.event_types.map(({ name, ...body }) => toDefinition(name, body));
    const seen = new Set<string>();
    for (const [index, { name }] of wanted.entries()) {
      if (seen.has(name)) {
        throw new Problem(422, 'duplicate_field', `${name} must be given once only`, {
          field: `event_types.${index}.name`,
        });
      }
      seen.add(name);
    }
    const before = await this.byName(tenantId);
    for (const [index, definition] of wanted.entries()) {
      const known = before.get(definition.name);
      // What is here already was judged when it came.
      if (!known || changesOf(known.definition, definition).length > 0)
        await this.check(definition, `event_types.${index}.`);
    }
    const missing = [...before.keys()].filter((name) => !seen.has(name)).sort();
    const removed = prune ? missing : [];
    if (!dryRun) await this.store(tenantId, wanted, removed);
    const changed = wanted.flatMap((definition) => {
      const known = before.get(definition.name);
      const changes = known ? changesOf(known.definition, definition) : [];
      return changes.length > 0 ? [{ name: definition.name, changes }] : [];
    });
    const changedNames = new Set(changed.map(({ name }) => name));
    return {
      dry_run: dryRun,
      created: wanted.map(({ name }) => name).filter((name) => !before.has(name)),
      changed,
      unchanged: wanted.map(({ name }) => name).filter((name) => before.has(name) && !changedNames.has(name)),
      removed,
      kept: prune ? [] : missing,
      warnings: wanted.flatMap(warningsOf),
    };
  }

  private async byName(tenantId: string): Promise<ReadonlyMap<string, EventTypeRow>> {
    return new Map((await this.types.all(tenantId)).map((row) => [row.name, row]));
  }

  private check(definition: EventTypeDefinition, place: string): Promise<void> {
    const { maxSchemaBytes } = this.config.catalogue;
    return checkDefinition(definition, place, { sandbox: this.sandbox, maxSchemaBytes });
  }

  private async store(
    tenantId: string,
    wanted: readonly EventTypeDefinition[],
    removed: readonly string[] = [],
  ): Promise<void> {
    const { maxBytes } = this.config.catalogue;
    await this.types.change(tenantId, async (tx) => {
      await this.types.put(tx, tenantId, wanted);
      if (removed.length > 0) await this.types.remove(tx, tenantId, removed);
      const size = await this.types.size(tx, tenantId);
      if (size > maxBytes) {
        throw new Problem(
          422,
          'catalogue_full',
          `The event types of a tenant have at most ${maxBytes} bytes together (POSTHORN_CATALOGUE_MAX_BYTES), and these would have ${size}`,
        );
      }
    });
    this.rules.forget(tenantId, [...wanted.map(({ name }) => name), ...removed]);
  }
}
