import { isEventType } from '../../domain/event-type.js';
import { decodeBody } from '../../http/body-parsers.js';
import { JsonReader, JsonSyntaxError } from '../../http/json-reader.js';
import { printableName, Problem } from '../../http/problems/problem.js';

/** What a test send carries: `data` is JSON text, as it was given. */
export interface TestSend {
  readonly type: string;
  readonly data: string;
}

export const defaultTestType = 'webhook.test';
const typeRule = 'type must be a dotted event type such as invoice.paid';
/** As deep as an event's data. */
const maxDepth = 128;

/**
 * Reads `{type?, data?}`, or no body. The data's text is cut out of the body, so that what is sent is what was given.
 * @throws {Problem}
 */
export function readTestSend(bytes: Buffer): TestSend {
  const text = decodeBody(bytes);
  if (text.trim() === '') return { type: defaultTestType, data: '{}' };
  try {
    return readObject(new JsonReader(text));
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new Problem(400, 'malformed_json', `The body is not valid JSON: ${error.message}`);
  }
}

function readObject(reader: JsonReader): TestSend {
  const fields = new Map<string, string>();
  let problem: Problem | null = null;
  if (reader.peek() === 'object') {
    reader.readObject((name) => {
      const { kind, start, end, string, depth } = reader.readValue();
      if (name !== 'type' && name !== 'data') problem ??= unknownField(name);
      else if (fields.has(name)) problem ??= refuse('duplicate_field', name, `${name} must be given once only`);
      else if (name === 'type' && (kind !== 'string' || !isEventType(string ?? ''))) {
        problem ??= refuse('invalid_field', name, typeRule);
      } else if (depth > maxDepth) {
        problem ??= refuse('too_deep', name, `data may nest arrays and objects at most ${maxDepth} levels deep`);
      }
      fields.set(name, name === 'type' ? (string ?? '') : reader.text.slice(start, end));
    });
  } else {
    reader.readValue();
    problem = refuse(
      'invalid_field',
      null,
      'Send a JSON object such as {"type": "invoice.paid", "data": {}}, or no body',
    );
  }
  reader.expectEnd();
  if (problem) throw problem;
  return { type: fields.get('type') ?? defaultTestType, data: fields.get('data') ?? '{}' };
}

function unknownField(name: string): Problem {
  const shown = printableName(name);
  return refuse('unknown_field', shown, `'${shown}' is not known here: known are type, data`);
}

function refuse(
  code: 'invalid_field' | 'unknown_field' | 'duplicate_field' | 'too_deep',
  field: string | null,
  rule: string,
) {
  return new Problem(422, code, rule, { field });
}
