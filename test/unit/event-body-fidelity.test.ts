import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultEnvelope } from '../../src/domain/envelope.js';
import { readEvent, readEventBatch } from '../../src/modules/events/event-body.js';
import { jsonText, whitespace } from '../support/json-text.js';

const member = fc.constantFrom('"type":"invoice.paid"', '"id":"e-1"', '"subject":"\\u00e9 \u{1f4ef}"', '"source":"/a"');

/** An event whose `data` stands anywhere among the other fields, with whitespace anywhere, and its key spelt in any way. */
const event = fc
  .tuple(
    jsonText,
    fc.uniqueArray(member, { maxLength: 3 }),
    fc.constantFrom('"data"', '"d\\u0061ta"', '"\\u0064\\u0061\\u0074\\u0061"'),
    fc.nat(4),
    fc.array(whitespace, { minLength: 4, maxLength: 4 }),
  )
  .map(([data, others, key, position, [a, b, c, d]]) => {
    const members = others.some((text) => text.startsWith('"type"')) ? others : [...others, '"type":"invoice.paid"'];
    members.splice(position, 0, `${a}${key}${b}:${c}${data}${d}`);
    return { data, text: `{${members.join(`${b},${c}`)}}` };
  });

describe('the data of an event', () => {
  it('is kept character for character, whatever JSON it is', () => {
    fc.assert(
      fc.property(event, whitespace, whitespace, ({ data, text }, before, after) => {
        const result = readEvent(Buffer.from(before + text + after, 'utf8'));
        if (!result.ok) throw new Error(result.detail);
        expect(result.event.data).toBe(data);
        expect(result.event.bodyHash).toEqual(createHash('sha256').update(text, 'utf8').digest());
      }),
      { numRuns: 1_000 },
    );
  });

  it('is kept for each event of a batch', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 5 }), whitespace, (events, space) => {
        const text = `{${space}"events":${space}[${events.map((one) => space + one.text + space).join(',')}]${space}}`;
        const result = readEventBatch(Buffer.from(text, 'utf8'), { maxEvents: 5, maxEventBytes: 1_000_000 });
        if (!result.ok) throw new Error(result.detail);
        expect(result.items.map((item) => (item.ok ? item.event.data : item.detail))).toEqual(
          events.map((e) => e.data),
        );
        expect(result.items.map((item) => (item.ok ? item.event.bodyHash.toString('hex') : item.detail))).toEqual(
          events.map((e) => createHash('sha256').update(e.text, 'utf8').digest('hex')),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('goes into the envelope as it stands', () => {
    fc.assert(
      fc.property(jsonText, (data) => {
        const fields = { deliveryId: 'whd_1', type: 'invoice.paid', createdAt: '2026-01-31T12:00:00.000Z' };
        expect(defaultEnvelope({ ...fields, apiVersion: null, data })).toBe(
          `{"delivery_id":"whd_1","type":"invoice.paid","created_at":"2026-01-31T12:00:00.000Z","api_version":null,"data":${data}}`,
        );
        expect(JSON.parse(defaultEnvelope({ ...fields, apiVersion: '2026-01-31 "x"', data }))).toEqual({
          delivery_id: fields.deliveryId,
          type: fields.type,
          created_at: fields.createdAt,
          api_version: '2026-01-31 "x"',
          data: JSON.parse(data) as unknown,
        });
      }),
      { numRuns: 500 },
    );
  });
});

describe('what counts as JSON', () => {
  const edit = fc.tuple(
    fc.nat(),
    fc.nat(3),
    fc.constantFrom('', ',', ':', '"', '[', ']', '{', '}', '0', '-', '.', 'e', '/'),
  );

  it('is what RFC 8259 says, no more and no less', () => {
    fc.assert(
      fc.property(jsonText, edit, (data, [position, removed, inserted]) => {
        const at = position % (data.length + 1);
        const edited = data.slice(0, at) + inserted + data.slice(at + removed);
        const text = `{"type":"invoice.paid","data":[${edited}]}`;
        if (/\p{Surrogate}/u.test(text)) return; // an edit cut a character in two
        const result = readEvent(Buffer.from(text, 'utf8'));
        const parsed = parse(text);
        expect(!result.ok && result.code === 'malformed_json').toBe(parsed === undefined);
      }),
      { numRuns: 3_000 },
    );
  });

  it('never makes the reader throw, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.boolean(), (bytes, framed) => {
        const body = framed
          ? Buffer.concat([Buffer.from('{"type":"a","data":'), bytes, Buffer.from('}')])
          : Buffer.from(bytes);
        expect(typeof readEvent(body).ok).toBe('boolean');
        expect(typeof readEventBatch(body, { maxEvents: 2, maxEventBytes: 40 }).ok).toBe('boolean');
      }),
      { numRuns: 1_000 },
    );
  });
});

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
