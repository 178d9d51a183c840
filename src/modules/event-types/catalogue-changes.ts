import type { EventTypeDefinition, EventTypeVersion } from '../../domain/event-catalogue.js';

/** What differs between two definitions, by the names of their fields; empty where nothing does. */
export function changesOf(before: EventTypeDefinition, after: EventTypeDefinition): string[] {
  const { versions: olds, ...oldFields } = before;
  const { versions: news, ...newFields } = after;
  const names = [...new Set([...olds, ...news].map(({ version }) => version))].sort();
  return [
    ...fieldChanges(oldFields, newFields, ''),
    ...names.flatMap((name) => versionChanges(name, find(olds, name), find(news, name))),
  ];
}

function versionChanges(
  name: string,
  before: EventTypeVersion | undefined,
  after: EventTypeVersion | undefined,
): string[] {
  return before && after ? fieldChanges(before, after, `versions.${name}.`) : [`versions.${name}`];
}

function fieldChanges<T extends object>(before: T, after: T, prefix: string): string[] {
  const names = Object.keys(before) as (keyof T & string)[];
  return names
    .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .map((name) => prefix + name);
}

const find = (versions: readonly EventTypeVersion[], name: string): EventTypeVersion | undefined =>
  versions.find(({ version }) => version === name);
