/** What is registered of an event type: what may leave, and its dated versions. */

export interface EventTypeVersion {
  /** A date, `2026-01-31`. */
  readonly version: string;
  readonly description: string | null;
  /** A JSON Schema, 2020-12; null: anything. */
  readonly schema: unknown;
  readonly examples: readonly unknown[];
  /** What may leave of this version's data where the type is thin; null: the type's pointers. */
  readonly pointers: readonly string[] | null;
  /** JSONata expressions that turn this version's data into an older one's, by that version. */
  readonly conversions: Readonly<Record<string, string>>;
}

export interface EventTypeDefinition {
  readonly name: string;
  readonly description: string | null;
  readonly payload: 'full' | 'thin';
  readonly pointers: readonly string[];
  /** What is published has to fit the schema of its version. */
  readonly enforce: boolean;
  readonly deprecated: boolean;
  readonly deprecation: string | null;
  /** Oldest first. */
  readonly versions: readonly EventTypeVersion[];
}

/** What counts when an event of the type is delivered. Kept beside the definition: an attempt reads no schemas. */
export interface DeliveryRules {
  readonly payload: 'full' | 'thin';
  readonly pointers: readonly string[];
  /** Oldest first. */
  readonly versions: readonly {
    readonly version: string;
    readonly pointers: readonly string[] | null;
    readonly conversions: Readonly<Record<string, string>>;
  }[];
}

/** Null where every event of the type goes out as published. */
export function deliveryRules({ payload, pointers, versions }: EventTypeDefinition): DeliveryRules | null {
  if (payload === 'full' && versions.length < 2) return null;
  return {
    payload,
    pointers,
    versions: versions.map(({ version, pointers, conversions }) => ({ version, pointers, conversions })),
  };
}

export const newestPin = 'newest';
export const versionPattern = /^\d{4}-\d{2}-\d{2}$/;

/** Is it a date, as versions are named by? */
export function isVersion(text: string): boolean {
  if (!versionPattern.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/** `2026-01-31`, or `newest`: not pinned. */
export function isPin(text: string): boolean {
  return text === newestPin || isVersion(text);
}

/**
 * The version that an endpoint gets: the newest that is not later than the day it is pinned to; where all are later, the oldest.
 * Null where there are none. Dates compare as texts.
 */
export function versionFor(pin: string, versions: readonly string[]): string | null {
  const sorted = [...versions].sort();
  if (pin === newestPin) return sorted.at(-1) ?? null;
  return sorted.findLast((version) => version <= pin) ?? sorted[0] ?? null;
}

/** One step of a conversion. */
export interface ConversionStep {
  readonly from: string;
  readonly to: string;
  /** JSONata. */
  readonly expression: string;
}

/**
 * The way from a version to an older one: the direct conversion where there is one, else the fewest steps through versions in
 * between. Null where there is no way.
 */
export function conversionPath(
  from: string,
  to: string,
  versions: readonly Pick<EventTypeVersion, 'version' | 'conversions'>[],
): readonly ConversionStep[] | null {
  const byVersion = new Map(versions.map((one) => [one.version, one.conversions]));
  const queue: { at: string; steps: readonly ConversionStep[] }[] = [{ at: from, steps: [] }];
  const seen = new Set([from]);
  for (let next = queue.shift(); next; next = queue.shift()) {
    if (next.at === to) return next.steps;
    // Of ways of the same length the one that stays new for longest.
    const conversions = Object.entries(byVersion.get(next.at) ?? {}).sort(([a], [b]) => (a < b ? 1 : -1));
    for (const [older, expression] of conversions) {
      if (older < to || seen.has(older)) continue;
      seen.add(older);
      queue.push({ at: older, steps: [...next.steps, { from: next.at, to: older, expression }] });
    }
  }
  return null;
}

/** What has to be done to an event's data for an endpoint. */
export type VersionPlan =
  | { readonly kind: 'as_published' }
  | { readonly kind: 'convert'; readonly to: string; readonly steps: readonly ConversionStep[] }
  /** Nobody may be sent a version that it didn't ask for. */
  | { readonly kind: 'impossible'; readonly from: string; readonly to: string };

/** How an event that says `eventVersion` comes to an endpoint with this pin. */
export function planVersion(rules: DeliveryRules, eventVersion: string | null, pin: string): VersionPlan {
  const names = rules.versions.map(({ version }) => version);
  const to = versionFor(pin, names);
  // A version of another kind than ours is the publisher's own: nothing is known of it.
  if (to === null || eventVersion === null || !isVersion(eventVersion) || eventVersion <= to)
    return { kind: 'as_published' };
  const steps = conversionPath(eventVersion, to, rules.versions);
  return steps ? { kind: 'convert', to, steps } : { kind: 'impossible', from: eventVersion, to };
}

/** What may leave of data in this version; null: all of it. */
export function pointersFor(rules: DeliveryRules, version: string | null): readonly string[] | null {
  if (rules.payload === 'full') return null;
  return rules.versions.find((one) => one.version === version)?.pointers ?? rules.pointers;
}

export const eventTypeNamePattern = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/;

const commands = new Set(
  `accept activate add allow approve archive assign authorize book buy call cancel capture change charge check clear close
  complete confirm connect convert create deactivate decline delete deliver deny disable disconnect dispatch edit enable end
  execute expire fail finalize finish fulfill generate grant import insert invite invoice join launch leave link lock login logout
  mark merge modify move notify open order pause pay post process publish purchase receive refund register reject release remove
  rename renew reopen replace request reset resolve restore resume retry return revoke run save schedule sell send ship sign start
  stop submit subscribe suspend sync terminate transfer trigger unlink unlock unsubscribe update upgrade upload use verify void
  withdraw`.split(/\s+/),
);

/** A sentence about a name whose last word reads as a command, rather than as a fact in the past; else null. */
export function nameWarning(name: string): string | null {
  const word = name.split(/[._-]/).at(-1) ?? '';
  if (!commands.has(word)) return null;
  return `The last word of '${name}' reads as a command: an event is a fact in the past, such as 'invoice.paid' rather than 'invoice.pay'`;
}
