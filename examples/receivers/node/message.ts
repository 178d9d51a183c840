/** What the receiver wants to know of a body, in either envelope. */
export interface Message {
  readonly type: string;
  /** What to deduplicate on: `delivery_id`, or `source` and `id` of a CloudEvent. */
  readonly key: string | null;
  /** When the event happened, not when it was sent. */
  readonly at: string | null;
  /** `data.challenge`, of a `webhook.verification`. */
  readonly challenge: string | null;
  /** `data.invoice_id`: what this service's events are about. Put yours in its place. */
  readonly invoiceId: string | null;
}

// A byte that isn't UTF-8 would silently become another character.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function parseMessage(body: Uint8Array): Message | null {
  const parsed = parseJson(body);
  const type = textOf(parsed, 'type');
  if (type === null) return null;
  const isCloudEvent = textOf(parsed, 'specversion') !== null;
  const data = propertyOf(parsed, 'data');
  return {
    type,
    key: isCloudEvent ? cloudEventKey(parsed) : textOf(parsed, 'delivery_id'),
    at: textOf(parsed, isCloudEvent ? 'time' : 'created_at'),
    challenge: textOf(data, 'challenge'),
    invoiceId: textOf(data, 'invoice_id'),
  };
}

/** `source` is a URI reference and so has no spaces. */
function cloudEventKey(event: unknown): string | null {
  const [source, id] = [textOf(event, 'source'), textOf(event, 'id')];
  return source === null || id === null ? null : `${source} ${id}`;
}

/** Undefined when it isn't JSON in UTF-8. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(body)) as unknown;
  } catch {
    return undefined;
  }
}

export function propertyOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function textOf(value: unknown, name: string): string | null {
  const property = propertyOf(value, name);
  return typeof property === 'string' && property !== '' ? property : null;
}
