import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isRefusedHeader,
  isSensitiveHeader,
  judgeHeaders,
  maskHeaders,
  refusedHeaders,
} from '../../src/domain/custom-headers.js';

const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, 'a']));

describe("an endpoint's own headers", () => {
  it.each([
    ['none', {}],
    ['credentials', { Authorization: 'Bearer 3f9a', Cookie: 'a=b; c="d"', 'X-Api-Key': 'k' }],
    ['twenty', many(20)],
    ['odd but valid names', { "!#$%&'*+-.^_`|~0aZ": 'x', accept: '*/*', 'X-Webhook-Id': 'x', 'Contents-Of': 'x' }],
    ['a name of 100 characters', { ['x'.repeat(100)]: 'a' }],
    ['a value of 2,000 characters', { 'X-A': 'a'.repeat(2_000) }],
    ['spaces within', { 'X-A': 'a  b' }],
    [
      'every printable character',
      { 'X-A': Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join('') },
    ],
  ])('are accepted as they stand: %s', (_, headers) => {
    expect(judgeHeaders(headers)).toEqual({ ok: true, headers });
  });

  it('may be called like something of the language', () => {
    const judgement = judgeHeaders(JSON.parse('{"__proto__":"a","constructor":"b"}'));
    if (!judgement.ok) throw new Error(judgement.rule);
    expect(Object.entries(judgement.headers)).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ]);
  });

  it.each([
    ['null', null, null, 'are an object'],
    ['nothing', undefined, null, 'are an object'],
    ['a list', [['X-A', 'a']], null, 'are an object'],
    ['text', 'X-A: a', null, 'are an object'],
    ['more than twenty', many(21), null, 'at most 20'],
    ['an empty name', { '': 'a' }, '', 'not empty'],
    ['a long name', { ['x'.repeat(101)]: 'a' }, 'x'.repeat(100), 'at most 100'],
    ['a name with a space', { 'X A': 'a' }, 'X A', 'only letters'],
    ['a name with a colon', { 'X-A:': 'a' }, 'X-A:', 'only letters'],
    ['a pseudo-header', { ':path': 'a' }, ':path', 'only letters'],
    ['a name with a line break', { 'X-A\r\nX-B': 'a' }, 'X-A\r\nX-B', 'only letters'],
    ['a name that is not ASCII', { 'X-É': 'a' }, 'X-É', 'only letters'],
    ['a Kelvin sign for a k', { '\u212aeep-Alive': 'a' }, '\u212aeep-Alive', 'only letters'],
    ['names that differ by case', { 'X-Team': 'a', 'x-team': 'b' }, 'x-team', 'given once'],
    ['a number', { 'X-A': 1 }, 'X-A', 'is a string'],
    ['a null value', { 'X-A': null }, 'X-A', 'is a string'],
    ['a list of values', { 'X-A': ['a'] }, 'X-A', 'is a string'],
    ['an empty value', { 'X-A': '' }, 'X-A', 'not empty'],
    ['a long value', { 'X-A': 'a'.repeat(2_001) }, 'X-A', 'at most 2000'],
    ['a value with CR and LF', { 'X-A': 'a\r\nWebhook-Id: b' }, 'X-A', 'printable ASCII'],
    ['a value with LF', { 'X-A': 'a\nb' }, 'X-A', 'printable ASCII'],
    ['a value with NUL', { 'X-A': 'a\0' }, 'X-A', 'printable ASCII'],
    ['a value with a tab', { 'X-A': 'a\tb' }, 'X-A', 'printable ASCII'],
    ['a value with DEL', { 'X-A': 'a\x7f' }, 'X-A', 'printable ASCII'],
    ['a value with an umlaut', { 'X-A': 'Zürich' }, 'X-A', 'printable ASCII'],
    ['a value with a character that ends in a line break', { 'X-A': '\u010a' }, 'X-A', 'printable ASCII'],
    ['a value that begins with a space', { 'X-A': ' a' }, 'X-A', 'begins nor ends'],
    ['a value that ends with a space', { 'X-A': 'a ' }, 'X-A', 'begins nor ends'],
    ['a header of ours', { 'X-A': 'a', 'webhook-signature': 't=1,v1=0' }, 'webhook-signature', 'set by Posthorn'],
  ])('are refused with the name, the rule and an example: %s', (_, given, name, why) => {
    const judgement = judgeHeaders(given);
    if (judgement.ok) throw new Error('accepted');
    expect(judgement.name).toBe(name);
    expect(judgement.rule).toContain(why);
    expect(judgement.rule).toContain('{"Authorization": "Bearer 3f9a"}');
  });

  const refused = Object.values(refusedHeaders).flat();
  it.each(refused)('never include %s, in any case', (entry) => {
    const name = entry.replace('*', 'Anything');
    for (const spelling of [name, name.toLowerCase(), name.toUpperCase()]) {
      expect(judgeHeaders({ [spelling]: 'a' })).toMatchObject({ ok: false, name: spelling });
    }
  });

  it.each(['Host', 'Content-Length', 'Content-Type', 'Transfer-Encoding', 'Webhook-Attempt', 'WebHook-Request-Origin'])(
    'can not replace what a request needs: %s',
    (name) => expect(isRefusedHeader(name)).toBe(true),
  );

  it('are judged without an exception, whatever they are, and accepted only as text that can be sent', () => {
    const anything = fc.dictionary(
      fc.string({ unit: 'binary', maxLength: 5 }),
      fc.oneof(fc.string({ unit: 'binary' }), fc.anything()),
    );
    fc.assert(
      fc.property(anything, (given) => {
        const judgement = judgeHeaders(given);
        if (judgement.ok) expect(() => new Headers(judgement.headers)).not.toThrow();
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('what is shown of headers', () => {
  it.each([
    'Authorization',
    'AUTHORIZATION',
    'X-Authorization',
    'cookie',
    'X-Api-Key',
    'x-apikey',
    'X-Access-Token',
    'X-Client-Secret',
    'X-Password',
    'X-Passphrase',
    'X-Credential',
    'X-Hub-Signature',
    'X-Auth',
    'X-Session-Id',
    'X-JWT',
  ])('is not the value of %s', (name) => {
    expect(isSensitiveHeader(name)).toBe(true);
    expect(maskHeaders({ [name]: 'abc' })).toEqual({ [name]: '***' });
  });

  it.each(['X-Team', 'Accept', 'X-Environment', 'Cache-Control'])('is the value of %s', (name) => {
    expect(isSensitiveHeader(name)).toBe(false);
    expect(maskHeaders({ [name]: 'abc' })).toEqual({ [name]: 'abc' });
  });

  it.each(['Bearer abc', 'basic abc', 'Token abc'])('is no value that looks like credentials: %s', (value) => {
    expect(maskHeaders({ 'X-Team': value })).toEqual({ 'X-Team': '***' });
  });
});
