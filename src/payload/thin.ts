import type { PointerTree } from '../domain/json-pointer.js';
import { JsonReader } from '../http/json-reader.js';

/**
 * The values of a JSON text that the pointers name, inside the objects and arrays that they stand in. Names and values are cut out
 * of the text, never written anew: big integers, escapes and number formats stay. A text of which nothing goes is returned as it is.
 */
export function thin(text: string, tree: PointerTree): string {
  const reader = new JsonReader(text);
  const kind = reader.peek();
  const kept = cut(reader, tree);
  return kept.complete ? text : (kept.text ?? (kind === 'object' ? '{}' : kind === 'array' ? '[]' : 'null'));
}

interface Cut {
  /** Null where nothing is left. */
  readonly text: string | null;
  /** Nothing was cut away. */
  readonly complete: boolean;
}

function cut(reader: JsonReader, tree: PointerTree): Cut {
  const kind = reader.peek();
  if (tree.whole || (kind !== 'object' && kind !== 'array')) {
    const { start, end } = reader.readValue();
    return tree.whole ? { text: reader.text.slice(start, end), complete: true } : { text: null, complete: false };
  }
  const parts: string[] = [];
  let complete = true;
  const take = (name: string, label: string): void => {
    const child = tree.children.get(name);
    if (!child) reader.readValue();
    const inner = child ? cut(reader, child) : { text: null, complete: false };
    complete &&= inner.complete;
    if (inner.text !== null) parts.push(label + inner.text);
  };
  let index = 0;
  const { start, end } =
    kind === 'object'
      ? reader.readObject((key, at) => take(key, `${reader.text.slice(at.start, at.end)}:`))
      : reader.readArray(() => take(String(index++), ''));
  if (complete) return { text: reader.text.slice(start, end), complete };
  if (parts.length === 0) return { text: null, complete };
  return { text: kind === 'object' ? `{${parts.join(',')}}` : `[${parts.join(',')}]`, complete };
}
