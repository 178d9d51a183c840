import { describe, expect, it } from 'vitest';
import { compileFilter, maxFilterConditions, maxFilterDepth } from '../../src/domain/content-filter.js';
import { parseExact } from '../../src/payload/parse-exact.js';

function decide(filter: unknown, data: string): string | null {
  const judged = compileFilter(filter);
  if (!judged.ok) throw new Error(`${judged.place}: ${judged.rule}`);
  return judged.filter.decide(parseExact(data));
}

const wanted: [what: string, filter: unknown, data: string][] = [
  ['everything, when it is empty', {}, '{"a":1}'],
  ['an equal text', { a: 'x' }, '{"a":"x"}'],
  ['an equal number, however it is written', { a: 100 }, '{"a":1.00e2}'],
  ['an equal boolean', { a: false }, '{"a":false}'],
  ['null', { a: null }, '{"a":null}'],
  [
    'nested values',
    { customer: { address: { country: 'DE' } } },
    '{"customer":{"address":{"country":"DE","zip":"1"}}}',
  ],
  ['all members together', { a: 1, b: 2 }, '{"a":1,"b":2,"c":3}'],
  ['one element of an array', { tags: 'gift' }, '{"tags":["new","gift"]}'],
  ['all of several elements', { tags: ['gift', 'new'] }, '{"tags":["new","x","gift"]}'],
  ['a nested value of one element', { items: { id: 456 } }, '{"items":[{"id":1},{"id":456}]}'],
  ['$eq', { a: { $eq: 'x' } }, '{"a":"x"}'],
  ['$neq of another value', { a: { $neq: 'x' } }, '{"a":"y"}'],
  ['$neq of another type', { a: { $neq: 1 } }, '{"a":"1"}'],
  ['$neq of what is missing', { a: { $neq: 'x' } }, '{}'],
  ['$in', { a: { $in: ['x', 2, null] } }, '{"a":null}'],
  ['$in of an element', { a: { $in: ['x'] } }, '{"a":["y","x"]}'],
  ['$nin', { a: { $nin: ['x', 2] } }, '{"a":3}'],
  ['$nin of what is missing', { a: { $nin: ['x'] } }, '{}'],
  ['$gt', { a: { $gt: 1 } }, '{"a":1.0000000000000000000001}'],
  ['$gte and $lt together', { a: { $gte: 1, $lt: 3 } }, '{"a":1}'],
  ['$lte of a negative number', { a: { $lte: -1 } }, '{"a":-1.5}'],
  ['$gt of texts, such as dates', { at: { $gt: '2026-01-31' } }, '{"at":"2026-02-01T00:00:00Z"}'],
  ['$exist of null', { a: { $exist: true } }, '{"a":null}'],
  ['$exist false of what is missing', { a: { b: { $exist: false } } }, '{"a":{}}'],
  ['$exist false below what is missing', { a: { b: { $exist: false } } }, '{}'],
  ['$exist false in an empty array', { a: { b: { $exist: false } } }, '{"a":[]}'],
  ['$startsWith', { a: { $startsWith: 'or' } }, '{"a":"order"}'],
  ['$endsWith', { a: { $endsWith: 'er' } }, '{"a":"order"}'],
  ['$not', { a: { $not: { $gt: 5 } } }, '{"a":5}'],
  ['$not of what is missing', { a: { $not: 'x' } }, '{}'],
  ['$not at the top', { $not: { a: 1 } }, '{"a":2}'],
  ['$or at the top', { $or: [{ a: 1 }, { b: 2 }] }, '{"a":0,"b":2}'],
  ['$or at a value', { a: { $or: [1, { $gt: 10 }] } }, '{"a":11}'],
  ['$and', { $and: [{ a: 1 }, { $or: [{ b: 1 }, { b: 2 }] }] }, '{"a":1,"b":2}'],
  ['a big integer that is larger', { id: { $gt: Number.MAX_SAFE_INTEGER } }, '{"id":9007199254740992}'],
  ['a number beyond all doubles', { a: { $gt: 1 } }, '{"a":1e400}'],
  ['zero, however it is written', { a: 0 }, '{"a":-0.0e7}'],
  ['an own field of an odd name', { constructor: 1 }, '{"constructor":1}'],
  ['a field called __proto__', JSON.parse('{"__proto__":{"x":1}}'), '{"__proto__":{"x":1}}'],
  ['data that is an array, by its elements', { a: 1 }, '[{"a":2},{"a":1}]'],
  ['data that is a text, by an operator', { $eq: 'x' }, '"x"'],
  ['an escape, as what it stands for', { a: 'é' }, '{"a":"\\u00e9"}'],
];

const refused: [what: string, filter: unknown, data: string, place: string][] = [
  ['another text', { a: 'x' }, '{"a":"X"}', 'filter.a'],
  ['a text that looks like the number', { a: 1 }, '{"a":"1"}', 'filter.a'],
  ['a number that looks like the text', { a: '1' }, '{"a":1}', 'filter.a'],
  ['a missing value, where null is wanted', { a: null }, '{}', 'filter.a'],
  ['null, where a text is wanted', { a: 'x' }, '{"a":null}', 'filter.a'],
  ['null in a comparison', { a: { $gte: 0 } }, '{"a":null}', 'filter.a.$gte'],
  ['a text in a comparison of numbers', { a: { $gt: 1 } }, '{"a":"2"}', 'filter.a.$gt'],
  ['a boolean as a number', { a: 1 }, '{"a":true}', 'filter.a'],
  ['a missing value in a comparison', { a: { $lt: 5 } }, '{}', 'filter.a.$lt'],
  ['a nested value of what is no object', { a: { b: 1 } }, '{"a":1}', 'filter.a.b'],
  ['$exist true of what is missing', { a: { $exist: true } }, '{}', 'filter.a.$exist'],
  ['$exist false of null', { a: { $exist: false } }, '{"a":null}', 'filter.a.$exist'],
  ['$neq, where one element is equal', { tags: { $neq: 'x' } }, '{"tags":["y","x"]}', 'filter.tags.$neq'],
  ['$nin, where one element is in it', { tags: { $nin: ['x'] } }, '{"tags":["y","x"]}', 'filter.tags.$nin'],
  ['an array that lacks one of several', { tags: ['a', 'b'] }, '{"tags":["a"]}', 'filter.tags.1'],
  ['an empty array', { tags: 'a' }, '{"tags":[]}', 'filter.tags'],
  ['arrays in arrays: one level is looked into', { tags: 'a' }, '{"tags":[["a"]]}', 'filter.tags'],
  [
    'a neighbour of a big integer',
    { id: { $lte: Number.MAX_SAFE_INTEGER } },
    '{"id":9007199254740992}',
    'filter.id.$lte',
  ],
  ['a big integer that a double would round to it', { id: 1e15 }, '{"id":1000000000000000.00001}', 'filter.id'],
  ['the second of two members', { a: 1, b: { c: 2 } }, '{"a":1,"b":{"c":3}}', 'filter.b.c'],
  ['$or, where none holds', { $or: [{ a: 1 }, { b: 1 }] }, '{"a":2}', 'filter.$or'],
  ['$and, where one does not hold', { $and: [{ a: 1 }, { b: 1 }] }, '{"a":1}', 'filter.$and.1.b'],
  ['an inherited name', { toString: { $exist: true } }, '{}', 'filter.toString.$exist'],
  ['data that is no object', { a: 1 }, '"x"', 'filter.a'],
];

const faulty: [what: string, filter: unknown, place: string][] = [
  ['a text as filter', 'x', 'filter'],
  ['a list as filter', [], 'filter'],
  ['an unknown operator', { a: { $regex: 'x' } }, 'filter.a.$regex'],
  ['the $exists of others', { a: { $exists: true } }, 'filter.a.$exists'],
  ['$exist of a text', { a: { $exist: 'yes' } }, 'filter.a.$exist'],
  ['$in of a text', { a: { $in: 'abc' } }, 'filter.a.$in'],
  ['$in of objects', { a: { $in: [{}] } }, 'filter.a.$in.0'],
  ['$eq of an object', { a: { $eq: { b: 1 } } }, 'filter.a.$eq'],
  ['$gt of a boolean', { a: { $gt: true } }, 'filter.a.$gt'],
  ['an empty $or', { $or: [] }, 'filter.$or'],
  ['$and of an object', { $and: {} }, 'filter.$and'],
  ['$startsWith of nothing', { a: { $startsWith: '' } }, 'filter.a.$startsWith'],
  ['a number that was rounded', { id: JSON.parse('12345678901234567891') }, 'filter.id'],
  ['a fraction of too many digits', { $or: [{ id: Number('0.12345678901234567') }] }, 'filter.$or.0.id'],
];

describe('a content filter', () => {
  it.each(wanted)('lets through %s', (_, filter, data) => expect(decide(filter, data)).toBeNull());

  it.each(refused)('stops %s, and says where', (_, filter, data, place) => expect(decide(filter, data)).toBe(place));

  it.each(faulty)('is refused with its place: %s', (_, filter, place) => {
    expect(compileFilter(filter)).toMatchObject({ ok: false, place, rule: expect.any(String) as string });
  });

  it('is bounded in depth, conditions and size', () => {
    const nested = (levels: number): object => (levels === 0 ? { $exist: true } : { a: nested(levels - 1) });
    expect(compileFilter(nested(maxFilterDepth - 1)).ok).toBe(true);
    expect(compileFilter(nested(maxFilterDepth))).toMatchObject({
      ok: false,
      rule: expect.stringContaining('deep') as string,
    });
    expect(compileFilter({ a: { $in: Array.from({ length: maxFilterConditions }, (_, i) => i) } })).toMatchObject({
      ok: false,
      rule: expect.stringContaining('conditions') as string,
    });
    expect(compileFilter({ a: 'x'.repeat(5_000) })).toMatchObject({ ok: false, place: 'filter' });
  });

  it('lets through what it would take too long to judge', () => {
    const data = JSON.stringify({ list: Array.from({ length: 60_000 }, (_, i) => i) });
    expect(decide({ list: -1 }, data)).toBe('filter.list');
    expect(decide({ $or: [{ list: -1 }, { list: -2 }] }, data)).toBeNull();
  });
});
