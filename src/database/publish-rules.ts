import { BoundedMap } from '../payload/bounded-map.js';
import type { EventTypeStore, PublishRule, TypeKey } from './event-type-store.js';

/** A change of the catalogue counts at once in the process that made it, in others after this long at most. */
export const publishRuleAgeMs = 1_000;
const mostKept = 10_000;

interface Known {
  /** Null: not registered. */
  readonly rule: PublishRule | null;
  readonly until: number;
}

/** What publishing needs to know of event types, kept for a moment: publishing reads no catalogue. */
export class PublishRules {
  private readonly known = new BoundedMap<string, Known>(mostKept);

  constructor(
    private readonly types: Pick<EventTypeStore, 'publishRules'>,
    private readonly now: () => number = Date.now,
  ) {}

  /** One per key, in order; null where the type isn't registered. */
  async of(keys: readonly TypeKey[]): Promise<(PublishRule | null)[]> {
    const now = this.now();
    const unknown = new Map<string, TypeKey>();
    for (const key of keys) if (!this.isFresh(key, now)) unknown.set(textOf(key), key);
    if (unknown.size > 0) {
      const found = await this.types.publishRules([...unknown.values()]);
      const rules = new Map(found.map((row) => [textOf(row), row]));
      for (const text of unknown.keys()) {
        this.known.set(text, { rule: rules.get(text) ?? null, until: now + publishRuleAgeMs });
      }
    }
    return keys.map((key) => this.known.get(textOf(key))?.rule ?? null);
  }

  /** Somebody changed these. */
  forget(tenantId: string, names: readonly string[]): void {
    for (const name of names) this.known.delete(textOf({ tenantId, name }));
  }

  private isFresh(key: TypeKey, now: number): boolean {
    return (this.known.get(textOf(key))?.until ?? 0) > now;
  }
}

/** Neither has a slash. */
const textOf = ({ tenantId, name }: TypeKey): string => `${tenantId}/${name}`;
