/** Event types are dotted names, `invoice.paid`; endpoints subscribe with exact names, `*` per segment, or `*` alone for all. */

export const maxEventTypeLength = 128;
const segment = '[A-Za-z0-9_-]+';
export const eventTypePattern = new RegExp(`^${segment}(\\.${segment})*$`);
export const eventFilterPattern = new RegExp(`^(${segment}|\\*)(\\.(${segment}|\\*))*$`);

export function isEventType(text: string): boolean {
  return text.length <= maxEventTypeLength && eventTypePattern.test(text);
}

export function isEventFilter(text: string): boolean {
  return text.length <= maxEventTypeLength && eventFilterPattern.test(text);
}

/** Does the filter choose the type? The meaning that the database's LIKE patterns below must have too. */
export function matchesEventFilter(filter: string, type: string): boolean {
  if (filter === '*') return true;
  const wanted = filter.split('.');
  const given = type.split('.');
  return wanted.length === given.length && wanted.every((name, i) => name === '*' || name === given[i]);
}

/** What the database compares: the number of segments, then the type. */
export function eventTypeSubject(type: string): string {
  return `${type.split('.').length}:${type}`;
}

/**
 * A LIKE pattern over {@link eventTypeSubject}. `%` could span dots, but with the segments counted in front every literal dot
 * of the pattern has to meet a dot of the type, so that none is left for a `%`.
 */
export function eventFilterToLike(filter: string): string {
  if (filter === '*') return '%';
  const escaped = filter.replace(/_/g, '\\_').replace(/\*/g, '%');
  return `${filter.split('.').length}:${escaped}`;
}
