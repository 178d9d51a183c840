import { type CompiledFilter, compileFilter } from '../domain/content-filter.js';
import { BoundedMap } from './bounded-map.js';
import { parseExact } from './parse-exact.js';

const compiled = new BoundedMap<string, CompiledFilter>(2_000);

/** An event's data, read once, and only when a filter asks for it. */
export class FilteredData {
  #value: { readonly data: unknown } | null = null;

  /** `text` is valid JSON. */
  constructor(private readonly text: string) {}

  /** Null where the endpoint's filter (JSON text, null for none) wants the data; else the place in the filter that decided. */
  decide(filter: string | null): string | null {
    if (filter === null) return null;
    this.#value ??= { data: parseExact(this.text) };
    return compiled.getOrMake(filter, () => compileStored(filter)).decide(this.#value.data);
  }
}

/** It was judged when it was written; a row from elsewhere wants everything, so that nothing is lost. */
function compileStored(filter: string): CompiledFilter {
  try {
    const judged = compileFilter(JSON.parse(filter));
    if (judged.ok) return judged.filter;
  } catch {
    // Not JSON: as below.
  }
  return { decide: () => null };
}
