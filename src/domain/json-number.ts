/** Numbers of JSON texts, compared as what is written: a double holds neither 12345678901234567891 nor all of its neighbours. */

/** A number that a double may not hold exactly. */
export class JsonNumber {
  readonly decimal: Decimal;

  /** `text` is a JSON number. */
  constructor(readonly text: string) {
    this.decimal = toDecimal(text);
  }
}

/** (−1)^negative · 0.digits · 10^exponent, without zeros at either end of the digits. Zero has none. */
interface Decimal {
  readonly negative: boolean;
  readonly digits: string;
  readonly exponent: bigint;
}

/** Less than 0, 0, or more than 0, as `sort` has it. */
export function compareNumbers(a: number | JsonNumber, b: number | JsonNumber): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return compareDecimals(decimalOf(a), decimalOf(b));
}

/** Was the number written in JSON surely this one? Whole numbers up to 2^53 − 1, and others of few digits, survive parsing. */
export function isExactlyKnown(value: number, maxDigits: number): boolean {
  if (!Number.isFinite(value)) return false;
  return Number.isSafeInteger(value) || toDecimal(String(value)).digits.length <= maxDigits;
}

function decimalOf(value: number | JsonNumber): Decimal {
  return typeof value === 'number' ? toDecimal(String(value)) : value.decimal;
}

const numberPattern = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

function toDecimal(text: string): Decimal {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = numberPattern.exec(text) ?? [];
  const all = whole + fraction;
  const first = all.search(/[1-9]/);
  if (first === -1) return { negative: false, digits: '', exponent: 0n };
  return {
    negative: sign === '-',
    digits: withoutEndingZeros(all.slice(first)),
    exponent: BigInt(whole.length - first) + exponentOf(exponent),
  };
}

/** `/0+$/` would take time by the square of the digits. */
function withoutEndingZeros(digits: string): string {
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 48) end--;
  return digits.slice(0, end);
}

/** An exponent of thousands of digits is none that anybody compares: beyond this, all are as large. */
function exponentOf(text: string): bigint {
  const digits = text.replace(/^[+-]?0*/, '');
  if (digits.length > 30) return text.startsWith('-') ? -(10n ** 30n) : 10n ** 30n;
  return BigInt(text.replace(/^\+/, ''));
}

function compareDecimals(a: Decimal, b: Decimal): number {
  const signs = signOf(a) - signOf(b);
  if (signs !== 0) return signs;
  const sign = signOf(a);
  if (a.exponent !== b.exponent) return a.exponent < b.exponent ? -sign : sign;
  return a.digits === b.digits ? 0 : a.digits < b.digits ? -sign : sign;
}

const signOf = ({ digits, negative }: Decimal): number => (digits === '' ? 0 : negative ? -1 : 1);
