import { describe, expect, it } from 'vitest';
import { parsePointer, pointerTree } from '../../src/domain/json-pointer.js';
import { thin } from '../../src/payload/thin.js';

const cut = (text: string, ...pointers: string[]): string => thin(text, pointerTree(pointers));

describe('a thin payload', () => {
  it.each([
    ['one value', '{ "id" : "inv_1", "card": 4242 }', ['/id'], '{"id":"inv_1"}'],
    ['nested values', '{"a":{"b":1,"c":2},"d":3}', ['/a/c'], '{"a":{"c":2}}'],
    ['whole objects', '{"a":{"b": [1, 2]},"d":3}', ['/a'], '{"a":{"b": [1, 2]}}'],
    ['elements of arrays', '{"a":[{"x":1,"y":2},{"x":3}]}', ['/a/1/x'], '{"a":[{"x":3}]}'],
    ['nothing, where nothing is named', '{"card":4242}', ['/id'], '{}'],
    ['no empty shells', '{"a":{"card":4242},"b":[1]}', ['/a/id', '/b/7'], '{}'],
    ['nothing of an array', '[1,2]', ['/id'], '[]'],
    ['nothing of a text', '"secret"', ['/id'], 'null'],
    ['names with slashes and tildes', '{"a/b":1,"c~d":2,"e":3}', ['/a~1b', '/c~0d'], '{"a/b":1,"c~d":2}'],
    ['names that are written with escapes', '{"\\u0069d":1,"x":2}', ['/id'], '{"\\u0069d":1}'],
    ['names of JavaScript', '{"__proto__":1,"constructor":2}', ['/__proto__'], '{"__proto__":1}'],
    ['a name that is there twice, twice', '{"id":1,"id":2,"x":3}', ['/id'], '{"id":1,"id":2}'],
    ['the wider of two pointers', '{"a":{"b":1,"c":2}}', ['/a/b', '/a'], '{"a":{"b":1,"c":2}}'],
  ])('keeps %s', (_, text, pointers, expected) => expect(cut(text, ...pointers)).toBe(expected));

  it('leaves spelling as it is: big integers, number formats, escapes, spaces in values', () => {
    const value = '{ "n":12345678901234567890, "f":1.00e+2, "s":"\\u0041\\/\\u2028", "deep":[ 1 ,2] }';
    expect(cut(`{"keep": ${value},"drop":1}`, '/keep')).toBe(`{"keep":${value}}`);
  });

  it('is the data byte for byte where nothing goes', () => {
    const text = ' { "id" :\t1 , "a":{ } }'.trim();
    expect(cut(text, '/id', '/a/x')).toBe(text);
  });

  it.each(['', 'id', '/a~2', '/a~', `/${'a'.repeat(300)}`])('has no pointer such as %j', (text) => {
    expect(parsePointer(text)).toBeNull();
  });
});
