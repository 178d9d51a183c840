import { Injectable } from '@nestjs/common';
import { EndpointStore } from '../../database/endpoint-store.js';
import { EventTypeStore } from '../../database/event-type-store.js';
import { deliveryRules, type EventTypeDefinition, versionFor } from '../../domain/event-catalogue.js';
import { matchesEventFilter } from '../../domain/event-type.js';
import { notFound } from '../../http/problems/problem.js';
import { PayloadShaper } from '../../payload/payload-shaper.js';
import { Sandbox } from '../../payload/sandbox.js';

const mostSamples = 50;

interface Sample {
  readonly kind: 'example' | 'event';
  /** JSON text. */
  readonly data: string;
  readonly version: string | null;
}

/** What another version would change for an endpoint, before anybody changes it. */
@Injectable()
export class ApiVersionService {
  private readonly shaper: PayloadShaper;

  constructor(
    private readonly endpoints: EndpointStore,
    private readonly types: EventTypeStore,
    sandbox: Sandbox,
  ) {
    // A sample is nothing that is kept.
    const forgetful = { find: async () => null, keep: async (...[, , , data]: string[]) => data ?? '' };
    this.shaper = new PayloadShaper(types, forgetful, sandbox);
  }

  async preview(tenantId: string, endpointId: string, to: string) {
    const endpoint = await this.endpoints.get(tenantId, endpointId);
    if (!endpoint) throw notFound('endpoint', endpointId);
    const from = endpoint.api_version;
    const unchanged: string[] = [];
    const changes: object[] = [];
    for (const { definition } of await this.types.all(tenantId)) {
      const names = definition.versions.map(({ version }) => version);
      const before = versionFor(from, names);
      const after = versionFor(to, names);
      if (!endpoint.events.some((filter) => matchesEventFilter(filter, definition.name))) continue;
      if (before === null || after === null || before === after) {
        unchanged.push(definition.name);
        continue;
      }
      const sample = changes.length < mostSamples ? await this.sampleOf(tenantId, definition) : null;
      const show = (pin: string) => sample && this.show(tenantId, definition, sample, pin, endpoint.payload);
      changes.push({
        type: definition.name,
        from_version: before,
        to_version: after,
        sample: sample?.kind ?? null,
        before: await show(from),
        after: await show(to),
      });
    }
    return { from, to, unchanged, changes };
  }

  private async sampleOf(tenantId: string, { name, versions }: EventTypeDefinition): Promise<Sample | null> {
    const newest = versions.at(-1);
    const [example] = newest?.examples ?? [];
    if (newest && example !== undefined)
      return { kind: 'example', data: JSON.stringify(example), version: newest.version };
    const event = await this.types.newestEvent(tenantId, name);
    return event && { kind: 'event', data: event.data, version: event.apiVersion };
  }

  private async show(
    tenantId: string,
    definition: EventTypeDefinition,
    { data, version }: Sample,
    pin: string,
    payload: 'full' | 'thin',
  ) {
    const rules = deliveryRules(definition);
    const shaped = await this.shaper.shape({
      tenantId,
      eventId: 'sample',
      type: definition.name,
      event: { data, apiVersion: version, typeRules: rules && JSON.stringify(rules) },
      endpoint: { payload: 'full', apiVersion: pin },
    });
    if (!shaped || 'problem' in shaped) return { data: null, problem: shaped?.problem ?? 'the payload was purged' };
    return payload === 'thin'
      ? { data: { event_id: 'evt_…' }, problem: null }
      : { data: JSON.parse(shaped.data) as unknown, problem: null };
  }
}
