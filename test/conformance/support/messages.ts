import * as fc from 'fast-check';
import type { AttemptRequestInput } from '../../../src/delivery/attempt-request.js';
import { isUriReference } from '../../../src/domain/envelope.js';
import { idPrefixes } from '../../../src/domain/ids.js';
import { newId } from '../../../src/security/new-id.js';
import { jsonText, stringText } from '../../support/json-text.js';

export type Delivery = AttemptRequestInput['delivery'];

/** Name it in POSTHORN_CONFORMANCE_SEED to get the same bodies again. */
export const seed = Number(process.env['POSTHORN_CONFORMANCE_SEED'] ?? Date.now() % 2 ** 31);

const unicode = fc.string({ unit: 'binary', maxLength: 300 }).map((text) => JSON.stringify(text));
const digits = fc.integer({ min: 1, max: 400 }).map((count) => '9'.repeat(count));
const deep = fc
  .integer({ min: 1, max: 120 })
  .chain((depth) => jsonText.map((inner) => '[{"a":'.repeat(depth / 2) + inner + '}]'.repeat(depth / 2)));
const repeated = (times: number) =>
  fc
    .tuple(stringText, fc.integer({ min: times / 2, max: times }))
    .map(([text, count]) => `[${`${text},`.repeat(count)}0]`);

/** JSON of every kind that a producer may publish. */
const data = fc.oneof(
  { arbitrary: jsonText, weight: 600 },
  { arbitrary: fc.json(), weight: 100 },
  { arbitrary: unicode, weight: 100 },
  { arbitrary: digits, weight: 40 },
  { arbitrary: deep, weight: 40 },
  { arbitrary: repeated(100), weight: 40 },
  { arbitrary: repeated(10_000), weight: 2 },
  { arbitrary: fc.constantFrom('""', '{}', '[]', 'null', '0', 'false', '"\u2028\u2029"', '{"":""}'), weight: 40 },
);

// What `POST /v1/events` accepts for each field.
const printable = (maxLength: number) =>
  fc
    .string({ unit: 'grapheme', minLength: 1, maxLength })
    .filter((text) => /^[^\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]+$/u.test(text));
const source = fc.oneof(
  fc.webUrl({ withFragments: true, withQueryParameters: true }).filter(isUriReference),
  fc.constantFrom(
    '/billing',
    'urn:example:a',
    'mailto:a@example.com',
    'billing/eu:1',
    '//example.com',
    '?a=b',
    '%C3%A9',
  ),
);
const type = fc.stringMatching(/^[A-Za-z0-9_-]{1,12}(\.[A-Za-z0-9_-]{1,12}){0,4}$/);

const delivery: fc.Arbitrary<Delivery> = fc.record({
  id: fc.constant(null).map(() => newId(idPrefixes.delivery)),
  eventId: fc.stringMatching(/^[A-Za-z0-9._:-]{1,200}$/),
  tenantId: fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/),
  type,
  createdAt: fc
    .date({ min: new Date('1970-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  apiVersion: fc.option(printable(64)),
  source: fc.option(source),
  subject: fc.option(printable(100)),
  data,
});

export function generateDeliveries(count: number, salt: number): Delivery[] {
  return fc.sample(delivery, { numRuns: count, seed: seed + salt });
}
