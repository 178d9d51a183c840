import { afterAll, describe, expect, it } from 'vitest';
import { Sandbox } from '../../src/payload/sandbox.js';

const sandbox = new Sandbox({ timeoutMs: 1_000, maxOutputBytes: 10_000 });
afterAll(() => sandbox.close());

const convert = (data: string, expression: string, schema: object | null = null) =>
  sandbox.convert(data, [{ expression, to: '2025-01-31', schema: schema && JSON.stringify(schema) }]);

const validate = async (schema: object, data: unknown) =>
  (await sandbox.validate([{ schema: JSON.stringify(schema), data: JSON.stringify(data) }]))[0];

describe('a conversion in the sandbox', () => {
  it('makes an older form of the data', async () => {
    expect(await convert('{"amount":{"value":5,"currency":"EUR"}}', '{"amount": amount.value}')).toBe('{"amount":5}');
  });

  it('carries numbers that a double can not hold, exactly as they are written', async () => {
    const data = '{"id":12345678901234567891,"list":[0.12345678901234567891,1e400,1.50,"\\u0001"]}';
    expect(await convert(data, '{"old_id": id, "list": list}')).toBe(
      '{"old_id":12345678901234567891,"list":[0.12345678901234567891,1e400,1.5,"\\u0001"]}',
    );
  });

  it('refuses to compute with such a number, rather than rounding it', async () => {
    await expect(convert('{"id":12345678901234567891}', '{"id": id + 1}')).rejects.toThrow(/conversion to 2025-01-31/);
    await expect(convert('{"id":12345678901234567891}', '{"id": "no " & id}')).rejects.toThrow(/too long for it/);
  });

  it.each([
    ['an endless recursion', '($f := function($x){ $f($x + 1) }; $f(0))'],
    ['a recursion without end that grows', '($f := function($x){ 1 + $f($x + 1) }; $f(0))'],
    ['a regular expression that backtracks for ever', '$match(text, /^(a+)+$/)'],
    ['a sequence without end', '[1..10000000]'],
    ['a text that doubles and doubles', '($f := function($s){ $f($s & $s) }; $f("abcdefgh"))'],
  ])('ends %s', async (_, expression) => {
    const startedAt = Date.now();
    await expect(convert(JSON.stringify({ text: `${'a'.repeat(60)}!` }), expression)).rejects.toMatchObject({
      name: 'SandboxRefusal',
    });
    expect(Date.now() - startedAt).toBeLessThan(6_000);
    // And the next one is served.
    expect(await convert('{"a":1}', 'a')).toBe('1');
  });

  it('fails at once for a while after it took too long', async () => {
    const expression = '$match(text, /^(b+)+$/)';
    const data = JSON.stringify({ text: `${'b'.repeat(60)}!` });
    await expect(convert(data, expression)).rejects.toMatchObject({ reason: 'too_slow' });
    const startedAt = Date.now();
    await expect(convert('{}', expression)).rejects.toMatchObject({ reason: 'too_slow' });
    expect(Date.now() - startedAt).toBeLessThan(500);
  });

  it.each(['$now()', '$millis()', '$random()', '$shuffle([1,2])', '$eval("1")', '$process', '$require("fs")'])(
    'has no %s',
    async (expression) => {
      const result = await convert('{}', `{"x": ${expression}}`).catch((error: Error) => error.name);
      expect(['SandboxRefusal', '{}']).toContain(result);
    },
  );

  it.each(['constructor', '__proto__', 'a.constructor.constructor', '$lookup($, "constructor")', '$sum.constructor'])(
    'reaches nothing by %s',
    async (expression) => {
      const result = await convert('{"a":1}', `{"x": ${expression}}`).catch((error: Error) => error.name);
      expect(['SandboxRefusal', '{}']).toContain(result);
    },
  );

  it('refuses nothing, functions and too much as a result', async () => {
    await expect(convert('{}', 'nothing')).rejects.toThrow(/makes nothing/);
    await expect(convert('{}', '{"f": function($x){$x}}')).rejects.toThrow(/not a function/);
    await expect(convert('{}', '[1..9000]')).rejects.toThrow(/more than 10000 bytes/);
  });

  it('refuses what does not fit the older schema, and says where', async () => {
    const schema = { type: 'object', properties: { amount: { type: 'string' } } };
    await expect(convert('{"amount":5}', '{"amount": amount}', schema)).rejects.toThrow(
      /does not fit its schema: \/amount must be string \(#\/properties\/amount\/type\)/,
    );
  });
});

describe('a schema in the sandbox', () => {
  it('says where data does not fit', async () => {
    expect(await validate({ properties: { a: { items: { type: 'integer' } } } }, { a: [1, 'x'] })).toEqual([
      { instancePath: '/a/1', schemaPath: '#/properties/a/items/type', message: 'must be integer' },
    ]);
    expect(await validate({ format: 'date-time' }, 'no')).toHaveLength(1);
    expect(await validate({ prefixItems: [{ const: 1 }], unevaluatedItems: false }, [1])).toEqual([]);
  });

  it.each([
    ['a pattern that backtracks for ever', { pattern: '^(a+)+$' }, `${'a'.repeat(60)}!`],
    [
      'alternatives of alternatives',
      {
        $defs: { n: { anyOf: Array.from({ length: 2 }, () => ({ type: 'array', items: { $ref: '#/$defs/n' } })) } },
        $ref: '#/$defs/n',
      },
      JSON.parse(`${'['.repeat(60)}1${']'.repeat(60)}`) as unknown,
    ],
  ])('is ended: %s', async (_, schema, data) => {
    await expect(validate(schema, data)).rejects.toMatchObject({ reason: 'too_slow' });
  });

  it.each([
    ['is no schema', { type: 'nonsense' }],
    ['refers to what is elsewhere', { $ref: 'https://example.com/schema.json' }],
    ['is of another draft', { $schema: 'http://json-schema.org/draft-07/schema#' }],
    ['has a pattern that is none', { pattern: '(' }],
  ])('is refused when it %s', async (_, schema) => {
    await expect(sandbox.check({ schema: JSON.stringify(schema) })).rejects.toMatchObject({ reason: 'refused' });
  });
});
