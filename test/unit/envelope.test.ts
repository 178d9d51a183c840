import { CloudEvent, HTTP } from 'cloudevents';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  cloudEventsEnvelope,
  contentTypes,
  isCloudEventsText,
  isUriReference,
  tenantSource,
  thinData,
  writeEnvelope,
  type EnvelopeFields,
} from '../../src/domain/envelope.js';
import { jsonText } from '../support/json-text.js';

const fields: EnvelopeFields = {
  deliveryId: 'whd_1',
  eventId: 'inv-1:paid',
  tenantId: 'acme',
  type: 'invoice.paid',
  createdAt: '2026-01-31T12:00:00.000Z',
  apiVersion: null,
  source: null,
  subject: null,
  data: '{"amount": 1.00}',
};
const cloudEvent = (changes: Partial<EnvelopeFields> = {}) => cloudEventsEnvelope({ ...fields, ...changes });

/** What a consumer with the CloudEvents library does; it throws for what is no CloudEvent. */
function parse(body: string) {
  const event = HTTP.toEvent<unknown>({ headers: { 'content-type': contentTypes.cloudevents }, body });
  if (!(event instanceof CloudEvent)) throw new Error('not one event');
  // The library's numbers end where JavaScript's do; the rest of the event is to be valid all the same.
  (event.data === Infinity || event.data === -Infinity ? event.cloneWith({ data: 0 }) : event).validate();
  return event;
}

describe('the default envelope', () => {
  it('names the delivery and carries the data as it stands', () => {
    expect(writeEnvelope('default', fields)).toBe(
      '{"delivery_id":"whd_1","type":"invoice.paid","created_at":"2026-01-31T12:00:00.000Z","api_version":null,"data":{"amount": 1.00}}',
    );
  });
});

describe('the CloudEvents envelope', () => {
  it('is CloudEvents 1.0 in structured JSON', () => {
    expect(writeEnvelope('cloudevents', { ...fields, source: '/billing', subject: 'inv 1 é' })).toBe(
      '{"specversion":"1.0","id":"inv-1:paid","source":"/billing","type":"invoice.paid","time":"2026-01-31T12:00:00.000Z",' +
        '"datacontenttype":"application/json","subject":"inv 1 é","data":{"amount": 1.00}}',
    );
    expect(contentTypes.cloudevents).toBe('application/cloudevents+json; charset=utf-8');
  });

  it.each([
    ['null', null],
    ['empty', ''],
  ])("has the tenant's source where the event's own is %s", (_, source) => {
    expect(parse(cloudEvent({ source }))).toMatchObject({ source: 'urn:posthorn:tenant:acme' });
  });

  it.each([
    ['null', null],
    ['empty', ''],
  ])('has no subject where it is %s', (_, subject) => {
    expect(JSON.parse(cloudEvent({ subject }))).not.toHaveProperty('subject');
  });

  it('carries any data character for character', () => {
    fc.assert(
      fc.property(jsonText, fc.constantFrom(null, 'inv_1', '"\\\u2028'), (data, subject) => {
        const body = cloudEvent({ data, subject });
        expect(body.endsWith(`,"data":${data}}`)).toBe(true);
        expect(JSON.parse(body)).toMatchObject({ specversion: '1.0', data: JSON.parse(data) as unknown });
        expect(parse(body)).toMatchObject({ id: fields.eventId, type: fields.type, time: fields.createdAt });
      }),
      { numRuns: 500 },
    );
  });
});

describe('a thin payload', () => {
  it("is the event's id", () => {
    expect(thinData('inv-1:paid')).toBe('{"event_id":"inv-1:paid"}');
  });
});

describe('a CloudEvents source', () => {
  it.each([
    'https://example.com/billing',
    'https://user@example.com:8443/a/b;c=1?q=/?#top',
    'http://[2001:db8::1]/x',
    '//example.com',
    '/billing',
    'billing/eu:1',
    './a:b',
    '?q',
    '#f',
    'urn:posthorn:tenant:default',
    'mailto:a@example.com',
    'a%20b',
    'file:///etc',
    '.',
    'x:',
  ])('is a URI reference, and the CloudEvents library agrees: %s', (source) => {
    expect(isUriReference(source)).toBe(true);
    expect(parse(cloudEvent({ source }))).toMatchObject({ source });
  });

  it.each([
    '',
    ' ',
    'a b',
    'é',
    ':a',
    '1a:b',
    'a#b#c',
    'a%2',
    'a%zz',
    'http://[::1',
    'http://a]/',
    '/a[0]',
    '<a>',
    'a\\b',
    '"',
    '{x}',
    'http://example.com:80a/',
    'a\n',
  ])('is nothing else: %j', (source) => {
    expect(isUriReference(source)).toBe(false);
  });

  it('is valid for every tenant', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/), (tenantId) => {
        expect(isUriReference(tenantSource(tenantId))).toBe(true);
      }),
    );
  });

  it('is judged in linear time', () => {
    for (const text of [`${'a/'.repeat(5_000)}[`, `${'a:'.repeat(5_000)}[`, `//${'a@'.repeat(5_000)}[`]) {
      const startMs = performance.now();
      expect(isUriReference(text)).toBe(false);
      expect(performance.now() - startMs).toBeLessThan(500);
    }
  });
});

describe('a CloudEvents text', () => {
  it.each(['inv_1', 'é \u{1f4ef}', ' ', '\u2028', '\u00a0'])('may be %j', (text) => {
    expect(isCloudEventsText(text)).toBe(true);
  });

  it.each(['', 'a\0', '\u001f', '\u007f', '\u009f', '\ud800', '\ufffe', '\ufdd0', '\u{1ffff}'])('is not %j', (text) => {
    expect(isCloudEventsText(text)).toBe(false);
  });
});
