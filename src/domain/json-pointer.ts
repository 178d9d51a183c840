/** JSON Pointers (RFC 6901), as they say what of an event's data may leave. */

export const maxPointers = 50;
export const maxPointerLength = 256;

/** The names and indexes on the way to a value, unescaped. */
export type PointerPath = readonly string[];

/** Null when the text isn't a pointer, or points to the whole document. */
export function parsePointer(text: string): PointerPath | null {
  if (text.length > maxPointerLength || !/^(?:\/(?:[^~/]|~[01])*)+$/u.test(text)) return null;
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replace(/~1/g, '/').replace(/~0/g, '~'));
}

/** Pointers as a tree. A leaf means: the whole value. */
export interface PointerTree {
  readonly children: ReadonlyMap<string, PointerTree>;
  readonly whole: boolean;
}

/** @throws when one of the texts is no pointer: they were judged when they were written. */
export function pointerTree(pointers: readonly string[]): PointerTree {
  const root = { children: new Map<string, PointerTree>(), whole: false };
  for (const pointer of pointers) {
    const path = parsePointer(pointer);
    if (!path) throw new Error(`'${pointer}' is not a JSON Pointer`);
    let node: { children: Map<string, PointerTree>; whole: boolean } = root;
    for (const name of path) {
      const next = (node.children.get(name) as typeof node | undefined) ?? { children: new Map(), whole: false };
      node.children.set(name, next);
      node = next;
    }
    node.whole = true;
  }
  return root;
}
