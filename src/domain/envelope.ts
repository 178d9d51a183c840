import type { EnvelopeName } from './profiles.js';

export interface DefaultEnvelopeFields {
  readonly deliveryId: string;
  readonly type: string;
  /** RFC 3339, UTC, milliseconds. */
  readonly createdAt: string;
  readonly apiVersion: string | null;
  /** JSON text. It goes in as it stands: parsing and serialising would change numbers, escapes and key order. */
  readonly data: string;
}

export interface CloudEventFields {
  readonly eventId: string;
  readonly tenantId: string;
  readonly type: string;
  /** RFC 3339, UTC, milliseconds. */
  readonly createdAt: string;
  /** A URI reference ({@link isUriReference}), or null for the tenant's own. */
  readonly source: string | null;
  /** Not empty ({@link isCloudEventsText}), or null for none. */
  readonly subject: string | null;
  /** JSON text, as above. */
  readonly data: string;
}

export type EnvelopeFields = DefaultEnvelopeFields & CloudEventFields;

export const contentTypes: Readonly<Record<EnvelopeName, string>> = {
  default: 'application/json',
  cloudevents: 'application/cloudevents+json; charset=utf-8',
};

/** The body of a message, as text. */
export function writeEnvelope(name: EnvelopeName, fields: EnvelopeFields): string {
  switch (name) {
    case 'default':
      return defaultEnvelope(fields);
    case 'cloudevents':
      return cloudEventsEnvelope(fields);
  }
}

/** `{"delivery_id","type","created_at","api_version","data"}` */
export function defaultEnvelope({ deliveryId, type, createdAt, apiVersion, data }: DefaultEnvelopeFields): string {
  return withData({ delivery_id: deliveryId, type, created_at: createdAt, api_version: apiVersion }, data);
}

/** A CloudEvent 1.0 in structured JSON mode (CloudEvents JSON Event Format, section 3). */
export function cloudEventsEnvelope(fields: CloudEventFields): string {
  const { eventId, type, createdAt, subject, data } = fields;
  return withData(
    {
      specversion: '1.0',
      id: eventId,
      source: fields.source || tenantSource(fields.tenantId),
      type,
      time: createdAt,
      datacontenttype: 'application/json',
      // Absent rather than empty or null: CloudEvents allows a subject to be neither.
      ...(subject ? { subject } : {}),
    },
    data,
  );
}

/** What stands for the data in a thin payload. */
export function thinData(eventId: string): string {
  return JSON.stringify({ event_id: eventId });
}

/** The CloudEvents source of what names none itself. Every tenant's id is valid in a URN. */
export function tenantSource(tenantId: string): string {
  return `urn:posthorn:tenant:${tenantId}`;
}

function withData(head: Readonly<Record<string, string | null>>, data: string): string {
  return `${JSON.stringify(head).slice(0, -1)},"data":${data}}`;
}

// RFC 3986, appendix A.
const escaped = '%[0-9A-Fa-f]{2}';
const unreserved = "A-Za-z0-9\\-._~!$&'()*+,;=";
const segment = (more: string) => `(?:[${unreserved}${more}]|${escaped})`;
const ipLiteral = `\\[(?:[0-9A-Fa-f:.]+|v[0-9A-Fa-f]+\\.[${unreserved}:]+)\\]`;
const authority = `//(?:${segment(':')}*@)?(?:${ipLiteral}|${segment('')}*)(?::[0-9]*)?`;
const pathAfterAuthority = `(?:/${segment(':@')}*)*`;
const absolutePath = `/(?:${segment(':@')}+(?:/${segment(':@')}*)*)?`;
// Without a scheme, a colon in the first segment would be read as the end of one.
const relativePath = (first: string) => `${segment(first)}+(?:/${segment(':@')}*)*`;
const hierarchy = (first: string) => `(?:${authority}${pathAfterAuthority}|${absolutePath}|${relativePath(first)}|)`;
const uriReference = new RegExp(
  `^(?:[A-Za-z][A-Za-z0-9+.-]*:${hierarchy(':@')}|${hierarchy('@')})` +
    `(?:\\?${segment(':@/?')}*)?(?:#${segment(':@/?')}*)?$`,
);

/** What CloudEvents 1.0 demands of `source`: a URI reference (RFC 3986, section 4.1) that is not empty. */
export function isUriReference(text: string): boolean {
  return text !== '' && uriReference.test(text);
}

/** What CloudEvents 1.0 demands of a string such as `subject`: not empty; no control, surrogate or noncharacter code points. */
export function isCloudEventsText(text: string): boolean {
  return /^[^\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]+$/u.test(text);
}
