import { BoundedMap } from '../payload/bounded-map.js';
import type { EventTypeStore, PublishRule, TypeKey } from './event-type-store.js';

/** A change of the catalogue counts at once in the process that made it, in others after this long at most. */
export const publishRuleAgeMs = 1_000;
const mostKept = 10_000;

interface Known {
  /** Null: not registered. */
  readonly rule: PublishRule | null;
  readonly until: number;
  /** Used after this, it is read anew in passing: who publishes steadily never waits for it. */
  readAgainAt: number;
}

/** What publishing needs to know of event types, kept for a moment: publishing reads no catalogue. */
export class PublishRules {
  private readonly known = new BoundedMap<string, Known>(mostKept);
  private changes = 0;

  constructor(
    private readonly types: Pick<EventTypeStore, 'publishRules'>,
    private readonly now: () => number = Date.now,
  ) {}

  /** One per key, in order; null where the type isn't registered. */
  async of(keys: readonly TypeKey[]): Promise<(PublishRule | null)[]> {
    const now = this.now();
    const unknown = new Map<string, TypeKey>();
    const aging = new Map<string, TypeKey>();
    const rules = new Map<string, PublishRule | null>();
    for (const key of keys) {
      const text = textOf(key);
      const known = this.known.get(text);
      if (!known || known.until <= now) {
        unknown.set(text, key);
        continue;
      }
      // By now: it may be forgotten while others are read.
      rules.set(text, known.rule);
      if (known.readAgainAt <= now) {
        known.readAgainAt = known.until;
        aging.set(text, key);
      }
    }
    if (aging.size > 0) void this.read(aging, now).catch(() => undefined);
    if (unknown.size > 0) for (const [text, rule] of await this.read(unknown, now)) rules.set(text, rule);
    return keys.map((key) => rules.get(textOf(key)) ?? null);
  }

  /** Somebody changed these. */
  forget(tenantId: string, names: readonly string[]): void {
    this.changes += 1;
    for (const name of names) this.known.delete(textOf({ tenantId, name }));
  }

  private async read(keys: ReadonlyMap<string, TypeKey>, now: number): Promise<ReadonlyMap<string, PublishRule>> {
    const { changes } = this;
    const found = await this.types.publishRules([...keys.values()]);
    const rules = new Map(found.map((row) => [textOf(row), row]));
    // What was read before a change must not outlive it.
    if (changes !== this.changes) return rules;
    for (const text of keys.keys()) {
      const until = now + publishRuleAgeMs;
      this.known.set(text, { rule: rules.get(text) ?? null, until, readAgainAt: now + publishRuleAgeMs / 2 });
    }
    return rules;
  }
}

/** Neither has a slash. */
const textOf = ({ tenantId, name }: TypeKey): string => `${tenantId}/${name}`;
