import { describe, expect, it } from 'vitest';
import { maxJsonDepth, readEvent, readEventBatch, type EventResult } from '../../src/modules/events/event-body.js';

const utf8 = (text: string) => Buffer.from(text, 'utf8');
const read = (text: string) => readEvent(utf8(text));
const withField = (name: string, json: string) => `{"type":"invoice.paid","data":1,"${name}":${json}}`;
const codes = (items: readonly EventResult[]) => items.map((item) => (item.ok ? item.event.type : item.code));
const hash = (text: string) => {
  const result = read(text);
  return result.ok ? result.event.bodyHash.toString('hex') : result.detail;
};
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

describe('a well-formed event', () => {
  it('is read with all its fields', () => {
    const result = read(
      '{"type":"invoice.paid","data":{"n":1.0},"id":"inv-1:paid","created_at":"2026-01-31T14:00:00.1239+02:00",' +
        '"source":"https://example.com/a?b=%20","subject":"caf\\u00e9 \u{1f4ef}","api_version":"2026-01-31","tenant_id":"acme"}',
    );
    expect(result).toMatchObject({
      ok: true,
      event: {
        type: 'invoice.paid',
        data: '{"n":1.0}',
        id: 'inv-1:paid',
        createdAt: '2026-01-31T12:00:00.123Z',
        source: 'https://example.com/a?b=%20',
        subject: 'café \u{1f4ef}',
        apiVersion: '2026-01-31',
        tenantId: 'acme',
      },
    });
  });

  it('may leave out, or give as null, what is optional', () => {
    const nothing = { id: null, createdAt: null, source: null, subject: null, apiVersion: null, tenantId: null };
    expect(read('{"type":"a","data":null}')).toMatchObject({ ok: true, event: { ...nothing, data: 'null' } });
    expect(
      read(
        '{"type":"a","data":0,"id":null,"created_at":null,"source":null,"subject":null,"api_version":null,"tenant_id":null}',
      ),
    ).toMatchObject({ ok: true, event: nothing });
  });

  it('may spell its keys and strings with escapes', () => {
    expect(read('{"\\u0074ype":"invoice\\u002epaid","d\\u0061ta":"\\u0061"}')).toMatchObject({
      ok: true,
      event: { type: 'invoice.paid', data: '"\\u0061"' },
    });
  });

  it.each([
    ['a NUL escape', '"\\u0000"'],
    ['a lone surrogate escape', '"\\ud800"'],
    ['U+2028', '"\u2028"'],
    ['a byte order mark inside a string', '"\ufeff"'],
    ['a number beyond doubles', '1e999'],
    ['duplicate keys', '{"a":1,"a":2,"data":3,"data":4}'],
    ['__proto__', '{"__proto__":{"a":1}}'],
    ['the deepest nesting', nested(maxJsonDepth)],
    ['an empty key', '{"":""}'],
  ])('may have in its data %s', (_, data) => {
    expect(read(`{"type":"a","data":${data}}`)).toMatchObject({ ok: true, event: { data } });
  });

  it.each([
    ['type', 'a'.repeat(128)],
    ['id', 'x'.repeat(200)],
    ['source', `/${'s'.repeat(511)}`],
    ['subject', '\u{1f4ef}'.repeat(512)],
    ['api_version', 'v'.repeat(64)],
    ['tenant_id', 't'.repeat(64)],
  ])('may have the longest %s', (name, value) => {
    const fields = { type: 'a', data: 1, [name]: value };
    expect(read(JSON.stringify(fields))).toMatchObject({ ok: true });
  });

  it('has a hash of its own bytes, not of the whitespace around it', () => {
    expect(hash(' {"type":"a","data":1}\n')).toBe(hash('{"type":"a","data":1}'));
    expect(hash('{"type":"a","data":1}')).not.toBe(hash('{"type":"a", "data":1}'));
    expect(hash('{"type":"a","data":1}')).not.toBe(hash('{"type":"a","data":1.0}'));
  });
});

const bad: [what: string, body: string | Buffer, status: number, code: string, field: string | null, says: RegExp][] = [
  ['nothing', '', 400, 'malformed_json', null, /empty/],
  ['only whitespace', ' \n', 400, 'malformed_json', null, /empty/],
  ['a byte order mark', '\ufeff{"type":"a","data":1}', 400, 'invalid_encoding', null, /byte order mark/],
  ['UTF-16', Buffer.from('{"type":"a","data":1}', 'utf16le'), 400, 'malformed_json', null, /not valid JSON/],
  ['UTF-16 with its mark', Buffer.from('\ufeff{}', 'utf16le'), 400, 'invalid_encoding', null, /UTF-8/],
  ['Latin-1', Buffer.from('{"type":"a","data":"é"}', 'latin1'), 400, 'invalid_encoding', null, /UTF-8/],
  ['an encoded surrogate', bytesInData(0xed, 0xa0, 0x80), 400, 'invalid_encoding', null, /UTF-8/],
  ['an overlong NUL', bytesInData(0xc0, 0x80), 400, 'invalid_encoding', null, /UTF-8/],
  ['a cut character', bytesInData(0xe2, 0x82), 400, 'invalid_encoding', null, /UTF-8/],
  ['a code beyond Unicode', bytesInData(0xf4, 0x90, 0x80, 0x80), 400, 'invalid_encoding', null, /UTF-8/],
  ['text', 'hello', 400, 'malformed_json', null, /expected a value at line 1, column 1/],
  ['a form', 'type=a&data=1', 400, 'malformed_json', null, /not valid JSON/],
  ['no end', '{"type":"a","data":1', 400, 'malformed_json', null, /expected ',' or '}' at its end/],
  ['two values', '{"type":"a","data":1}{}', 400, 'malformed_json', null, /nothing more after the value/],
  [
    'a trailing comma',
    '{"type":"a",\n"data":1,}',
    400,
    'malformed_json',
    null,
    /name in double quotes at line 2, column 10/,
  ],
  ['a trailing comma in data', '{"type":"a","data":[1,]}', 400, 'malformed_json', null, /expected a value/],
  ['a missing comma', '{"type":"a" "data":1}', 400, 'malformed_json', null, /',' or '}'/],
  ['a missing colon', '{"type" "a"}', 400, 'malformed_json', null, /':'/],
  ['a line comment', '{"type":"a", // x\n"data":1}', 400, 'malformed_json', null, /no comments/],
  ['a block comment', '{"type":"a","data":/* x */1}', 400, 'malformed_json', null, /no comments/],
  ['a name without quotes', '{type:"a","data":1}', 400, 'malformed_json', null, /double quotes/],
  ['single quotes', "{'type':'a','data':1}", 400, 'malformed_json', null, /double quotes/],
  ['NaN', '{"type":"a","data":NaN}', 400, 'malformed_json', null, /a value/],
  ['a leading zero', '{"type":"a","data":01}', 400, 'malformed_json', null, /',' or '}'/],
  ['a leading plus', '{"type":"a","data":+1}', 400, 'malformed_json', null, /a value/],
  ['a bare minus', '{"type":"a","data":-}', 400, 'malformed_json', null, /a value/],
  ['a number without fraction', '{"type":"a","data":1.}', 400, 'malformed_json', null, /a digit/],
  ['a number without exponent', '{"type":"a","data":1e}', 400, 'malformed_json', null, /a digit/],
  ['an unknown escape', '{"type":"a","data":"\\x41"}', 400, 'malformed_json', null, /after the backslash/],
  ['a short escape', '{"type":"a","data":"\\u41"}', 400, 'malformed_json', null, /four hexadecimal digits/],
  ['a raw tab in a string', '{"type":"a","data":"\t"}', 400, 'malformed_json', null, /control characters/],
  ['a raw NUL in a string', '{"type":"a","data":"\0"}', 400, 'malformed_json', null, /control characters/],
  ['a line break in a string', '{"type":"a","data":"\n"}', 400, 'malformed_json', null, /closing "/],
  ['a no-break space between tokens', '{"type":"a",\u00a0"data":1}', 400, 'malformed_json', null, /double quotes/],
  ['brackets crossed', '{"type":"a","data":[{]}}', 400, 'malformed_json', null, /name in double quotes/],
  ['an array', '[]', 422, 'invalid_field', null, /JSON object/],
  ['a string', '"x"', 422, 'invalid_field', null, /JSON object/],
  ['null', 'null', 422, 'invalid_field', null, /JSON object/],
  ['an empty object', '{}', 422, 'missing_field', 'type', /invoice\.paid/],
  ['no type', '{"data":1}', 422, 'missing_field', 'type', /type is missing/],
  ['no data', '{"type":"a"}', 422, 'missing_field', 'data', /any JSON value/],
  ['data one level too deep', `{"type":"a","data":${nested(maxJsonDepth + 1)}}`, 422, 'too_deep', 'data', /128 levels/],
  ['data far too deep', `{"type":"a","data":${nested(100_000)}}`, 422, 'too_deep', 'data', /128 levels/],
  ['a root far too deep', nested(100_000), 422, 'too_deep', null, /128 levels/],
  ['brackets without end', '['.repeat(100_000), 400, 'malformed_json', null, /at its end/],
  ['objects without end', '{"a":'.repeat(100_000), 400, 'malformed_json', null, /at its end/],
  ['data twice', '{"type":"a","data":1,"data":1}', 422, 'duplicate_field', 'data', /once only/],
  ['data twice, once escaped', '{"d\\u0061ta":1,"type":"a","data":2}', 422, 'duplicate_field', 'data', /once only/],
  ['type twice', '{"type":"a","type":"b","data":1}', 422, 'duplicate_field', 'type', /once only/],
  ['an unknown field', '{"type":"a","data":1,"payload":{}}', 422, 'unknown_field', 'payload', /known are type, data/],
  ['a field of another case', '{"Type":"a","data":1}', 422, 'unknown_field', 'Type', /known are/],
  ['__proto__ as a field', '{"__proto__":{"type":"a"},"data":1}', 422, 'unknown_field', '__proto__', /known are/],
  ['an unknown field of odd characters', '{"\\u0000\\ud800":1}', 422, 'unknown_field', '\ufffd\ufffd', /known are/],
  ['a long unknown field', `{"${'k'.repeat(9_999)}":1}`, 422, 'unknown_field', 'k'.repeat(64), /known are/],
  ['a null type', '{"type":null,"data":1}', 422, 'invalid_field', 'type', /dotted name/],
  ['a number as type', '{"type":1,"data":1}', 422, 'invalid_field', 'type', /dotted name/],
  ['an empty type', '{"type":"","data":1}', 422, 'invalid_field', 'type', /dotted name/],
  ['a type with a wildcard', '{"type":"a.*","data":1}', 422, 'invalid_field', 'type', /dotted name/],
  ['a type with an empty segment', '{"type":"a..b","data":1}', 422, 'invalid_field', 'type', /dotted name/],
  ['a type with a line break', '{"type":"a\\n","data":1}', 422, 'invalid_field', 'type', /dotted name/],
  ['a type with NUL', '{"type":"a\\u0000","data":1}', 422, 'invalid_field', 'type', /dotted name/],
  ['a long type', `{"type":"${'a'.repeat(129)}","data":1}`, 422, 'invalid_field', 'type', /128/],
  ['an empty id', withField('id', '""'), 422, 'invalid_field', 'id', /1 – 200/],
  ['a long id', withField('id', `"${'x'.repeat(201)}"`), 422, 'invalid_field', 'id', /1 – 200/],
  ['an id with a space', withField('id', '"a b"'), 422, 'invalid_field', 'id', /1 – 200/],
  ['a number as id', withField('id', '7'), 422, 'invalid_field', 'id', /a string/],
  ['a date without time', withField('created_at', '"2026-01-31"'), 422, 'invalid_field', 'created_at', /RFC 3339/],
  [
    'a time without offset',
    withField('created_at', '"2026-01-31T12:00:00"'),
    422,
    'invalid_field',
    'created_at',
    /offset/,
  ],
  [
    'a day that is not',
    withField('created_at', '"2026-02-30T12:00:00Z"'),
    422,
    'invalid_field',
    'created_at',
    /RFC 3339/,
  ],
  ['Unix seconds', withField('created_at', '1700000000'), 422, 'invalid_field', 'created_at', /RFC 3339/],
  ['an empty source', withField('source', '""'), 422, 'invalid_field', 'source', /URI reference/],
  ['a source with a space', withField('source', '"a b"'), 422, 'invalid_field', 'source', /URI reference/],
  ['a source with a bad escape', withField('source', '"/%zz"'), 422, 'invalid_field', 'source', /URI reference/],
  ['a source with NUL', withField('source', '"/\\u0000"'), 422, 'invalid_field', 'source', /URI reference/],
  ['a long source', withField('source', `"${'s'.repeat(513)}"`), 422, 'invalid_field', 'source', /512/],
  ['an object as source', withField('source', '{"a":1}'), 422, 'invalid_field', 'source', /URI reference/],
  ['a subject with NUL', withField('subject', '"a\\u0000"'), 422, 'invalid_field', 'subject', /control characters/],
  ['a subject with a lone surrogate', withField('subject', '"\\udc00"'), 422, 'invalid_field', 'subject', /surrogates/],
  ['an empty subject', withField('subject', '""'), 422, 'invalid_field', 'subject', /1 – 512/],
  ['a long subject', withField('subject', `"${'\u{1f4ef}'.repeat(513)}"`), 422, 'invalid_field', 'subject', /512/],
  ['a long api_version', withField('api_version', `"${'v'.repeat(65)}"`), 422, 'invalid_field', 'api_version', /64/],
  ['true as api_version', withField('api_version', 'true'), 422, 'invalid_field', 'api_version', /a string/],
  ['a tenant with a slash', withField('tenant_id', '"a/b"'), 422, 'invalid_field', 'tenant_id', /1 – 64/],
  ['a field too deep', withField('id', nested(200)), 422, 'too_deep', 'id', /128 levels/],
];

describe('a bad event', () => {
  it.each(bad)('is refused: %s', (_, body, status, code, field, says) => {
    const result = readEvent(typeof body === 'string' ? utf8(body) : body);
    expect(result).toMatchObject({ ok: false, status, code, field });
    expect(result.ok ? '' : result.detail).toMatch(says);
    expect(result.ok ? 0 : result.detail.length).toBeLessThan(300);
  });

  it('is refused in a time that grows with its length only', () => {
    const started = performance.now();
    for (const text of ['[', '{"a":', '[[],', '"\\', '/*', ' ', '-', '\n']) read(text.repeat(250_000 / text.length));
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe('a batch', () => {
  const limits = { maxEvents: 3, maxEventBytes: 60 };
  const readBatch = (text: string) => readEventBatch(utf8(text), limits);

  it('judges each event on its own', () => {
    const result = readBatch(`{"events":[{"type":"a","data":1},{"type":"b"},{"type":"c","data":[]}]}`);
    expect(result.ok && codes(result.items)).toEqual(['a', 'missing_field', 'c']);
  });

  it.each([
    ['no object', '7', 'invalid_field'],
    ['an array', '[{"type":"z","data":1}]', 'invalid_field'],
    ['an unknown field', '{"type":"a","data":1,"x":1}', 'unknown_field'],
    ['data twice', '{"type":"a","data":1,"data":2}', 'duplicate_field'],
    ['too deep', `{"type":"a","data":${nested(20_000)}}`, 'too_large'],
    ['too large', `{"type":"a","data":"${'é'.repeat(20)}"}`, 'too_large'],
  ])('goes on after an event that is bad: %s', (_, item, code) => {
    const result = readBatch(`{"events":[{"type":"a","data":1},${item},{"type":"c","data":2}]}`);
    expect(result.ok && codes(result.items)).toEqual(['a', code, 'c']);
  });

  it('goes on after an event that nests too deep but is not too large', () => {
    const text = `{"events":[{"type":"a","data":${nested(20_000)}},{"type":"b","data":2}]}`;
    const result = readEventBatch(utf8(text), { maxEvents: 2, maxEventBytes: 100_000 });
    expect(result.ok && codes(result.items)).toEqual(['too_deep', 'b']);
  });

  it('may be empty', () => {
    expect(readBatch('{"events":[]}')).toEqual({ ok: true, items: [] });
  });

  it.each([
    ['bad syntax in one event', '{"events":[{"type":"a","data":1},{"type":}]}', 400, 'malformed_json', null],
    ['bad syntax after its end', '{"events":[]}]', 400, 'malformed_json', null],
    ['bad syntax beyond the limit', '{"events":[1,2,3,4,]}', 400, 'malformed_json', null],
    ['a bare array', '[{"type":"a","data":1}]', 422, 'invalid_field', null],
    ['no events', '{}', 422, 'missing_field', 'events'],
    ['events of another type', '{"events":{}}', 422, 'invalid_field', 'events'],
    ['events twice', '{"events":[],"\\u0065vents":[]}', 422, 'duplicate_field', 'events'],
    ['an unknown field', '{"events":[],"atomic":true}', 422, 'unknown_field', 'atomic'],
    ['too many events', '{"events":[1,2,3,4]}', 413, 'too_many_events', 'events'],
    ['a byte order mark', '\ufeff{"events":[]}', 400, 'invalid_encoding', null],
    ['nothing', '', 400, 'malformed_json', null],
  ])('is refused as a whole: %s', (_, text, status, code, field) => {
    expect(readBatch(text)).toMatchObject({ ok: false, status, code, field });
  });
});

function bytesInData(...bytes: number[]): Buffer {
  return Buffer.concat([utf8('{"type":"a","data":"'), Buffer.from(bytes), utf8('"}')]);
}
