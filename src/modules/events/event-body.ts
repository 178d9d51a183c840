import { hash } from 'node:crypto';
import { isCloudEventsText, isUriReference } from '../../domain/envelope.js';
import { isEventType, maxEventTypeLength } from '../../domain/event-type.js';
import { eventIdPattern, tenantIdPattern } from '../../domain/ids.js';
import { toUtcMilliseconds } from '../../domain/date-time.js';
import { JsonReader, JsonSyntaxError, type JsonValue } from '../../http/json-reader.js';

/** An event as its producer published it, validated. */
export interface PublishedEvent {
  readonly type: string;
  readonly id: string | null;
  /** RFC 3339, UTC, milliseconds. */
  readonly createdAt: string | null;
  readonly source: string | null;
  readonly subject: string | null;
  readonly apiVersion: string | null;
  readonly tenantId: string | null;
  /** The text of the data value, exactly as published. */
  readonly data: string;
  /** SHA-256 of the event object's exact bytes, from `{` to `}`. */
  readonly bodyHash: Buffer;
}

export interface EventProblem {
  readonly ok: false;
  readonly status: 400 | 413 | 422;
  readonly code:
    | 'malformed_json'
    | 'invalid_encoding'
    | 'too_deep'
    | 'too_large'
    | 'too_many_events'
    | 'missing_field'
    | 'invalid_field'
    | 'unknown_field'
    | 'duplicate_field';
  readonly field: string | null;
  /** Says what would be right. */
  readonly detail: string;
}

export type EventResult = { readonly ok: true; readonly event: PublishedEvent } | EventProblem;
export type EventBatchResult = { readonly ok: true; readonly items: readonly EventResult[] } | EventProblem;

export interface BatchLimits {
  readonly maxEvents: number;
  readonly maxEventBytes: number;
}

/** Levels of arrays and objects inside one field: more than any real payload has, and safe for recursive parsers of consumers. */
export const maxJsonDepth = 128;
export const maxSourceLength = 512;
export const maxSubjectLength = 512;
export const maxApiVersionLength = 64;

const eventFields = ['type', 'data', 'id', 'created_at', 'source', 'subject', 'api_version', 'tenant_id'];

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads the body of `POST /v1/events`. */
export function readEvent(bytes: Buffer): EventResult {
  return readText(bytes, 'type and data', (text) => {
    const reader = new JsonReader(text);
    const result = readEventObject(reader);
    reader.expectEnd();
    return result;
  });
}

/** Reads the body of `POST /v1/events/batch`, `{"events": [...]}`: each event is judged on its own. */
export function readEventBatch(bytes: Buffer, limits: BatchLimits): EventBatchResult {
  return readText(bytes, 'an events array', (text): EventBatchResult => {
    const reader = new JsonReader(text);
    if (reader.peek() !== 'object') {
      reader.readValue();
      reader.expectEnd();
      return invalid(null, 'The body must be a JSON object, {"events": [...]}');
    }
    const items: EventResult[] = [];
    let problem: EventProblem | null = null;
    let seen = false;
    let count = 0;
    reader.readObject((key) => {
      if (key !== 'events') problem ??= unknownField(key, ['events']);
      else if (seen) problem ??= duplicateField('events');
      else if (reader.peek() !== 'array') problem ??= invalid('events', 'events must be an array of events');
      else {
        seen = true;
        reader.readArray(() => {
          // What is over the limit is only checked for syntax: the whole batch is refused anyway.
          if (++count > limits.maxEvents) reader.readValue();
          else items.push(readEventObject(reader, limits.maxEventBytes));
        });
        return;
      }
      reader.readValue();
    });
    reader.expectEnd();
    if (problem) return problem;
    if (!seen) return missingField('events', 'an array of events');
    if (count > limits.maxEvents) {
      const detail = `A batch takes at most ${limits.maxEvents} events, this one has ${count}: split it`;
      return { ok: false, status: 413, code: 'too_many_events', field: 'events', detail };
    }
    return { ok: true, items };
  });
}

/** Decodes the bytes and turns a syntax error into its problem. */
function readText<T>(bytes: Buffer, wanted: string, read: (text: string) => T): T | EventProblem {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    return encodingProblem('The body starts with a byte order mark (EF BB BF): send UTF-8 without one');
  }
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return encodingProblem('The body is not valid UTF-8: send JSON encoded as UTF-8');
  }
  if (text.trim() === '') {
    const detail = `The body is empty: send a JSON object with ${wanted}`;
    return { ok: false, status: 400, code: 'malformed_json', field: null, detail };
  }
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    const detail = `The body is not valid JSON: ${error.message}`;
    return { ok: false, status: 400, code: 'malformed_json', field: null, detail };
  }
}

/** A part of a text holds all of it in memory, and these live longer than the request. */
const detached = (text: string): string => Buffer.from(text, 'utf8').toString('utf8');

/** Reads over the value that comes next and judges it as an event. Throws only for bad syntax. */
function readEventObject(reader: JsonReader, maxBytes = Number.POSITIVE_INFINITY): EventResult {
  if (reader.peek() !== 'object') {
    const { depth } = reader.readValue();
    return depth > maxJsonDepth ? tooDeep(null) : invalid(null, 'An event must be a JSON object with type and data');
  }
  const values = new Map<string, JsonValue>();
  let problem: EventProblem | null = null;
  const { start, end } = reader.readObject((key) => {
    const value = reader.readValue();
    if (!eventFields.includes(key)) problem ??= unknownField(key, eventFields);
    else if (values.has(key)) problem ??= duplicateField(key);
    else if (value.depth > maxJsonDepth) problem ??= tooDeep(key);
    else values.set(key, value);
  });
  const text = reader.text.slice(start, end);
  if (Buffer.byteLength(text, 'utf8') > maxBytes) {
    const detail = `An event takes at most ${maxBytes} bytes: send less data, or a reference to it`;
    return { ok: false, status: 413, code: 'too_large', field: null, detail };
  }
  return problem ?? validate(values, reader.text, hash('sha256', text, 'buffer'));
}

function validate(values: ReadonlyMap<string, JsonValue>, text: string, bodyHash: Buffer): EventResult {
  const fields: Record<string, string | null> = {};
  for (const { name, read, rule } of stringFields) {
    const value = values.get(name);
    const given = value && (value.kind !== 'null' || name === 'type');
    const accepted = given && value.string !== null ? read(value.string) : null;
    if (given && accepted === null) return invalid(name, `${name} must be ${rule}`);
    fields[name] = accepted === null ? null : detached(accepted);
  }
  const type = fields['type'];
  if (type === null || type === undefined) return missingField('type', 'a dotted name such as invoice.paid');
  const data = values.get('data');
  if (!data) return missingField('data', 'any JSON value');
  const optional = (name: string): string | null => fields[name] ?? null;
  const event = {
    type,
    id: optional('id'),
    createdAt: optional('created_at'),
    source: optional('source'),
    subject: optional('subject'),
    apiVersion: optional('api_version'),
    tenantId: optional('tenant_id'),
    data: text.slice(data.start, data.end),
    bodyHash,
  };
  return { ok: true, event };
}

interface StringField {
  readonly name: string;
  /** The value as kept, or null when it is refused. */
  readonly read: (text: string) => string | null;
  readonly rule: string;
}

const matching = (accepts: (text: string) => boolean) => (text: string) => (accepts(text) ? text : null);
// Cc holds NUL, which the database refuses; Cs matches only lone surrogates, which have no UTF-8 form.
const printable = (maxLength: number) => {
  const pattern = new RegExp(`^[^\\p{Cc}\\p{Cs}]{1,${maxLength}}$`, 'u');
  return matching((text) => pattern.test(text));
};

const stringFields: readonly StringField[] = [
  {
    name: 'type',
    read: matching(isEventType),
    rule: `a dotted name of at most ${maxEventTypeLength} characters from [A-Za-z0-9_-], such as invoice.paid`,
  },
  {
    name: 'id',
    read: matching((text) => eventIdPattern.test(text)),
    rule: 'a string of 1 – 200 characters from [A-Za-z0-9._:-]',
  },
  {
    name: 'created_at',
    read: toUtcMilliseconds,
    rule: 'an RFC 3339 time with an offset, such as 2026-01-31T12:00:00.000Z',
  },
  {
    name: 'source',
    read: matching((text) => text.length <= maxSourceLength && isUriReference(text)),
    rule: `a URI reference of 1 – ${maxSourceLength} characters, such as https://example.com/billing or /billing`,
  },
  {
    name: 'subject',
    read: matching((text) => Array.from(text).length <= maxSubjectLength && isCloudEventsText(text)),
    rule: `a string of 1 – ${maxSubjectLength} characters without control characters, lone surrogates or noncharacters`,
  },
  {
    name: 'api_version',
    read: printable(maxApiVersionLength),
    rule: `a string of 1 – ${maxApiVersionLength} characters without control characters or lone surrogates, such as 2026-01-31`,
  },
  {
    name: 'tenant_id',
    read: matching((text) => tenantIdPattern.test(text)),
    rule: 'a string of 1 – 64 characters from [A-Za-z0-9._-]',
  },
];

function invalid(field: string | null, detail: string): EventProblem {
  return { ok: false, status: 422, code: 'invalid_field', field, detail };
}

function missingField(field: string, wanted: string): EventProblem {
  return { ok: false, status: 422, code: 'missing_field', field, detail: `${field} is missing: send ${wanted}` };
}

function duplicateField(field: string): EventProblem {
  return { ok: false, status: 422, code: 'duplicate_field', field, detail: `${field} must be given once only` };
}

function tooDeep(field: string | null): EventProblem {
  const detail = `${field ?? 'The body'} may nest arrays and objects at most ${maxJsonDepth} levels deep`;
  return { ok: false, status: 422, code: 'too_deep', field, detail };
}

function unknownField(key: string, known: readonly string[]): EventProblem {
  // Names are the producer's and of any length and content; an answer has to stay short and printable.
  const field = key.slice(0, 64).replace(/[\p{Cc}\p{Cs}]/gu, '\ufffd');
  const detail = `${JSON.stringify(field)} is not a field here: known are ${known.join(', ')}`;
  return { ok: false, status: 422, code: 'unknown_field', field, detail };
}

function encodingProblem(detail: string): EventProblem {
  return { ok: false, status: 400, code: 'invalid_encoding', field: null, detail };
}
