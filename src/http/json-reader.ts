import { createScanner, type JSONScanner } from 'jsonc-parser';

// jsonc-parser declares these as ambient const enums, which isolatedModules can't read.
const Token = {
  openBrace: 1,
  closeBrace: 2,
  openBracket: 3,
  closeBracket: 4,
  comma: 5,
  colon: 6,
  null: 7,
  true: 8,
  false: 9,
  string: 10,
  number: 11,
  lineComment: 12,
  blockComment: 13,
  end: 17,
} as const;

const kinds: ReadonlyMap<number, JsonKind> = new Map<number, JsonKind>([
  [Token.openBrace, 'object'],
  [Token.openBracket, 'array'],
  [Token.string, 'string'],
  [Token.number, 'number'],
  [Token.true, 'boolean'],
  [Token.false, 'boolean'],
  [Token.null, 'null'],
]);

const tokenErrors: Readonly<Record<number, string>> = {
  2: 'a closing " for this string, with line breaks inside it written as \\n',
  3: 'a digit in this number',
  4: 'four hexadecimal digits after \\u',
  5: 'one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u after the backslash',
  6: 'control characters in a string to be written as escapes, such as \\u0000',
};

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null';

/** Offsets into the text: `text.slice(start, end)` is what is meant, exactly as written. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** One value as it stands in the text. */
export interface JsonValue extends Span {
  readonly kind: JsonKind;
  /** A string's unescaped value, else null. */
  readonly string: string | null;
  /** Levels of arrays and objects: 0 for a string or number, 1 for `[]`. */
  readonly depth: number;
}

export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

/**
 * Reads strict JSON (RFC 8259) and says where each value begins and ends, so that it can be cut out instead of re-serialised.
 * Nesting is followed with a stack of its own: no text overflows the call stack.
 */
export class JsonReader {
  readonly #scanner: JSONScanner;
  #token = 0;

  constructor(readonly text: string) {
    this.#scanner = createScanner(text);
    this.#next();
  }

  /** The kind of the value that comes next. @throws {JsonSyntaxError} when none does. */
  peek(): JsonKind {
    return kinds.get(this.#token) ?? this.#fail('a value');
  }

  /** @throws {JsonSyntaxError} unless the text ends here. */
  expectEnd(): void {
    if (this.#token !== Token.end) this.#fail('nothing more after the value');
  }

  /**
   * Reads the object that comes next, member by member. `read` gets the name, and its offsets; it has to consume the member's value
   * with one of the other methods.
   * @returns the object's offsets.
   */
  readObject(read: (key: string, keyAt: Span) => void): Span {
    const start = this.#scanner.getTokenOffset();
    this.#take(Token.openBrace, "'{'");
    if (this.#token !== Token.closeBrace) {
      do {
        const keyAt = { start: this.#scanner.getTokenOffset(), end: this.#tokenEnd() };
        read(this.#takeKey(), keyAt);
      } while (this.#takeComma());
    }
    const end = this.#tokenEnd();
    this.#take(Token.closeBrace, "',' or '}'");
    return { start, end };
  }

  /** Reads the array that comes next. `read` has to consume one element with one of the other methods. @returns its offsets. */
  readArray(read: () => void): Span {
    const start = this.#scanner.getTokenOffset();
    this.#take(Token.openBracket, "'['");
    if (this.#token !== Token.closeBracket) {
      do read();
      while (this.#takeComma());
    }
    const end = this.#tokenEnd();
    this.#take(Token.closeBracket, "',' or ']'");
    return { start, end };
  }

  /** Reads over any value, however deep. */
  readValue(): JsonValue {
    const kind = this.peek();
    const start = this.#scanner.getTokenOffset();
    const string = kind === 'string' ? this.#scanner.getTokenValue() : null;
    let end = this.#tokenEnd();
    if (kind !== 'object' && kind !== 'array') {
      this.#next();
      return { kind, start, end, string, depth: 0 };
    }
    const open = new OpenBrackets();
    let complete = false;
    while (!complete) {
      const isObject = this.#token === Token.openBrace;
      end = this.#tokenEnd();
      if (isObject || this.#token === Token.openBracket) {
        this.#next();
        open.push(isObject);
        if (this.#token !== (isObject ? Token.closeBrace : Token.closeBracket)) {
          if (isObject) this.#takeKey();
          this.peek();
          continue;
        }
      } else {
        this.peek();
        this.#next();
      }
      // A value is complete; close what it completes, or go on with the next one beside it.
      for (;;) {
        const inObject = open.top();
        if (inObject === null) {
          complete = true;
          break;
        }
        if (this.#takeComma()) {
          if (inObject) this.#takeKey();
          break;
        }
        end = this.#tokenEnd();
        this.#take(inObject ? Token.closeBrace : Token.closeBracket, inObject ? "',' or '}'" : "',' or ']'");
        open.pop();
      }
    }
    return { kind, start, end, string, depth: open.deepest };
  }

  #takeKey(): string {
    const key = this.#scanner.getTokenValue();
    this.#take(Token.string, 'a field name in double quotes');
    this.#take(Token.colon, "':'");
    return key;
  }

  #takeComma(): boolean {
    if (this.#token !== Token.comma) return false;
    this.#next();
    return true;
  }

  #take(token: number, expected: string): void {
    if (this.#token !== token) this.#fail(expected);
    this.#next();
  }

  #tokenEnd(): number {
    return this.#scanner.getTokenOffset() + this.#scanner.getTokenLength();
  }

  #next(): void {
    // Skipped here, because the scanner would collect white space character by character.
    const offset = skipWhitespace(this.text, this.#scanner.getPosition());
    this.#scanner.setPosition(offset);
    this.#token = this.#scanner.scan();
    if (this.#token === Token.lineComment || this.#token === Token.blockComment) this.#fail('no comments');
    const error = this.#scanner.getTokenError() as number;
    if (error !== 0) this.#fail(tokenErrors[error] ?? 'a well-formed token');
  }

  #fail(expected: string): never {
    const offset = this.#scanner.getTokenOffset();
    const { line, column } = positionOf(this.text, offset);
    const where = this.#token === Token.end ? 'at its end' : `at line ${line}, column ${column}`;
    throw new JsonSyntaxError(`expected ${expected} ${where}`);
  }
}

const lineFeed = 10;
const carriageReturn = 13;

function skipWhitespace(text: string, offset: number): number {
  for (; ; offset++) {
    const code = text.charCodeAt(offset);
    if (code !== 32 && code !== 9 && code !== lineFeed && code !== carriageReturn) return offset;
  }
}

/** Counts from 1, as editors do. */
function positionOf(text: string, offset: number): { readonly line: number; readonly column: number } {
  let line = 1;
  let lineStart = 0;
  for (let i = 0; i < offset; i++) {
    const code = text.charCodeAt(i);
    if (code !== lineFeed && (code !== carriageReturn || text.charCodeAt(i + 1) === lineFeed)) continue;
    line++;
    lineStart = i + 1;
  }
  return { line, column: offset - lineStart + 1 };
}

/** A stack of one bit of knowledge per open bracket, in bytes: eight million of them are still only 8 MiB. */
class OpenBrackets {
  #isObject = new Uint8Array(64);
  #size = 0;
  deepest = 0;

  push(isObject: boolean): void {
    if (this.#size === this.#isObject.length) {
      const larger = new Uint8Array(this.#size * 2);
      larger.set(this.#isObject);
      this.#isObject = larger;
    }
    this.#isObject[this.#size++] = isObject ? 1 : 0;
    this.deepest = Math.max(this.deepest, this.#size);
  }

  pop(): void {
    this.#size--;
  }

  /** Is the innermost bracket an object's? Null when none is open. */
  top(): boolean | null {
    return this.#size === 0 ? null : this.#isObject[this.#size - 1] === 1;
  }
}
