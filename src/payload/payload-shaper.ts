import {
  type ConversionStep,
  type DeliveryRules,
  type EventTypeDefinition,
  planVersion,
  pointersFor,
} from '../domain/event-catalogue.js';
import { type PointerTree, pointerTree } from '../domain/json-pointer.js';
import { BoundedMap } from './bounded-map.js';
import { type Sandbox, SandboxRefusal, type SandboxStep } from './sandbox.js';
import { thin } from './thin.js';

/** An event that is to be delivered, and what its endpoint and its type say of that. */
export interface PayloadToShape {
  readonly tenantId: string;
  readonly eventId: string;
  readonly type: string;
  readonly event: {
    readonly data: string | null;
    readonly apiVersion: string | null;
    readonly typeRules: string | null;
  };
  readonly endpoint: { readonly payload: 'full' | 'thin'; readonly apiVersion: string };
}

/** What goes out: `data` is JSON text. Or why nothing can. */
export type ShapedPayload =
  { readonly data: string; readonly apiVersion: string | null } | { readonly problem: string };

/** Data as they were converted before. */
export interface Renditions {
  find(tenantId: string, eventId: string, version: string): Promise<string | null>;
  /** What was kept first counts, and is returned. */
  keep(tenantId: string, eventId: string, version: string, data: string): Promise<string>;
}

export interface TypeDefinitions {
  get(tenantId: string, name: string): Promise<{ readonly definition: EventTypeDefinition } | null>;
}

/** Brings an event's data into the version that its endpoint is pinned to, and cuts out what may leave. */
export class PayloadShaper {
  private readonly rules = new BoundedMap<string, DeliveryRules>(500);
  private readonly trees = new BoundedMap<string, PointerTree>(500);

  constructor(
    private readonly types: TypeDefinitions,
    private readonly renditions: Renditions,
    private readonly sandbox: Pick<Sandbox, 'convert'>,
  ) {}

  /** Null where the data was purged. @throws when the database is away. */
  async shape(delivery: PayloadToShape): Promise<ShapedPayload | null> {
    const { event, endpoint } = delivery;
    const { data, apiVersion, typeRules } = event;
    if (data === null) return null;
    // The endpoint gets the event's id only: nothing of the data leaves.
    if (typeRules === null || endpoint.payload === 'thin') return { data, apiVersion };
    const rules = this.rules.getOrMake(typeRules, () => JSON.parse(typeRules) as DeliveryRules);
    const plan = planVersion(rules, apiVersion, endpoint.apiVersion);
    switch (plan.kind) {
      case 'as_published':
        return { data: this.cut(rules, apiVersion, data), apiVersion };
      case 'impossible':
        return { problem: `no conversion leads from version ${plan.from} of ${delivery.type} to ${plan.to}` };
      case 'convert': {
        const converted = await this.convert(delivery, data, plan.to, plan.steps);
        if ('problem' in converted) return converted;
        return { data: this.cut(rules, plan.to, converted.data), apiVersion: plan.to };
      }
    }
  }

  private cut(rules: DeliveryRules, version: string | null, data: string): string {
    const pointers = pointersFor(rules, version);
    if (pointers === null) return data;
    return thin(
      data,
      this.trees.getOrMake(JSON.stringify(pointers), () => pointerTree(pointers)),
    );
  }

  private async convert(
    { tenantId, eventId, type }: PayloadToShape,
    data: string,
    to: string,
    steps: readonly ConversionStep[],
  ): Promise<{ readonly data: string } | { readonly problem: string }> {
    const before = await this.renditions.find(tenantId, eventId, to);
    if (before !== null) return { data: before };
    const row = await this.types.get(tenantId, type);
    try {
      const converted = await this.sandbox.convert(data, row ? sandboxSteps(row.definition, steps) : toSteps(steps));
      return { data: await this.renditions.keep(tenantId, eventId, to, converted) };
    } catch (error) {
      if (!(error instanceof SandboxRefusal)) throw error;
      return {
        problem: error.reason === 'too_slow' ? `the conversion to ${to} failed: ${error.message}` : error.message,
      };
    }
  }
}

/** The steps, each with the schema that its result has to fit. */
export function sandboxSteps(
  { versions }: Pick<EventTypeDefinition, 'versions'>,
  steps: readonly ConversionStep[],
): SandboxStep[] {
  const schemas = new Map(versions.map(({ version, schema }) => [version, schema ?? null]));
  return steps.map(({ expression, to }) => {
    const schema = schemas.get(to) ?? null;
    return { expression, to, schema: schema === null ? null : JSON.stringify(schema) };
  });
}

const toSteps = (steps: readonly ConversionStep[]): SandboxStep[] =>
  steps.map(({ expression, to }) => ({ expression, to, schema: null }));
