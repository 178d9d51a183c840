import * as fc from 'fast-check';

/** JSON texts that are valid and odd: whitespace, escapes, big numbers, duplicate keys, characters that tools stumble over. */

export const whitespace = fc.array(fc.constantFrom(' ', '\t', '\n', '\r', '\r\n'), { maxLength: 3 }).map(join);

const character = fc.oneof(
  fc.constantFrom('a', 'Z', '0', '/', "'", '<', '>', '&', '\u007f', '\u0080', '\u00e9', '\u2028', '\u2029', '\ufeff'),
  fc.constantFrom('\ufffd', '\ufffe', '\u{1f4ef}', '\u{10ffff}', 'e\u0301', '\u202e', '\u200d'),
  fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\u0041', '\\u2028', '\\u00E9', '\\u00e9'),
  // Escapes that have no character of their own in a database or in UTF-8.
  fc.constantFrom('\\u0000', '\\ud800', '\\uDFFF', '\\udfff\\ud800', '\\ud83d\\udcef', '\\u001f'),
  fc
    .integer({ min: 0x20, max: 0x10ffff })
    .filter((code) => code !== 0x22 && code !== 0x5c && (code < 0xd800 || code > 0xdfff))
    .map((code) => String.fromCodePoint(code)),
);

export const stringText = fc.array(character, { maxLength: 8 }).map((parts) => `"${parts.join('')}"`);

const numberText = fc.oneof(
  fc.constantFrom('0', '-0', '1.0', '-0.0', '1e400', '-1E-400', '1E+2', '0.10', '9007199254740993', '0e0'),
  fc.constantFrom('123456789012345678901234567890', '3.14159265358979323846264338327950288'),
  fc.integer().map(String),
);

// A type alias: fast-check's typing refuses an interface here.
type Texts = { value: string; array: string; object: string };

const { value } = fc.letrec<Texts>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('null', 'true', 'false', '{}', '[]', '{ }', '[\n]'),
    numberText,
    stringText,
    tie('array'),
    tie('object'),
  ),
  array: fc
    .array(fc.tuple(whitespace, tie('value'), whitespace).map(join), { maxLength: 4 })
    .map((all) => `[${all.join(',')}]`),
  object: fc
    .array(
      fc
        .tuple(
          whitespace,
          fc.oneof(fc.constantFrom('"a"', '"\\u0061"', '"data"', '"__proto__"'), stringText),
          whitespace,
        )
        .chain((key) => fc.tuple(whitespace, tie('value'), whitespace).map((rest) => `${join(key)}:${join(rest)}`)),
      { maxLength: 4 },
    )
    .map((all) => `{${all.join(',')}}`),
}));

export const jsonText = value;

function join(parts: readonly string[]): string {
  return parts.join('');
}
