import { JsonNumber } from '../domain/json-number.js';
import { JsonReader } from '../http/json-reader.js';

/** A number of so many digits, or with an exponent, may be one that a double can't hold. The same inside a text costs only time. */
const maybeInexact = /\d[\d.]{15}|\d[eE][+-]?\d/;

/** The value of a valid JSON text, in which numbers that a double may not hold are {@link JsonNumber}s. */
export function parseExact(text: string): unknown {
  return maybeInexact.test(text) ? readExact(new JsonReader(text)) : (JSON.parse(text) as unknown);
}

/** Recursive: data nests 128 levels at most. */
function readExact(reader: JsonReader): unknown {
  switch (reader.peek()) {
    case 'object': {
      const entries: [string, unknown][] = [];
      reader.readObject((key) => void entries.push([key, readExact(reader)]));
      return Object.fromEntries(entries);
    }
    case 'array': {
      const elements: unknown[] = [];
      reader.readArray(() => void elements.push(readExact(reader)));
      return elements;
    }
    case 'number': {
      const { start, end } = reader.readValue();
      const text = reader.text.slice(start, end);
      return maybeInexact.test(text) ? new JsonNumber(text) : Number(text);
    }
    case 'string':
      return reader.readValue().string;
    case 'boolean': {
      const { start } = reader.readValue();
      return reader.text.charAt(start) === 't';
    }
    case 'null':
      reader.readValue();
      return null;
  }
}
