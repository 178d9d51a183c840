import { compareNumbers, isExactlyKnown, type JsonNumber } from './json-number.js';

/**
 * The language of content filters, over an event's `data`. A condition is a value (equality), an object of conditions by name, or an
 * object of operators; all of an object's members have to hold. Where the data has an array, one of its elements has to hold.
 */

export const filterOperators = [
  '$eq',
  '$neq',
  '$in',
  '$nin',
  '$gt',
  '$gte',
  '$lt',
  '$lte',
  '$startsWith',
  '$endsWith',
  '$exist',
  '$not',
  '$and',
  '$or',
] as const;
type Operator = (typeof filterOperators)[number];

export const maxFilterBytes = 4_096;
export const maxFilterDepth = 10;
export const maxFilterConditions = 100;
const maxNameLength = 256;
const maxDigits = 15;
/** More comparisons than a filter may take on one event: then the event counts as wanted, so that nothing is lost. */
export const maxFilterSteps = 100_000;

/** A JSON value in which numbers that a double can't hold are kept as text. */
export type FilterData = unknown;

export interface CompiledFilter {
  /** Null when the data is wanted; else the place in the filter that decided, such as `filter.amount.$gte`. */
  decide(data: FilterData): string | null;
}

export type FilterJudgement =
  | { readonly ok: true; readonly filter: CompiledFilter }
  /** `place` is where in the filter; `rule` says what would be right. */
  | { readonly ok: false; readonly place: string; readonly rule: string };

/** Checks and compiles a filter. `filter` is parsed JSON. */
export function compileFilter(filter: unknown): FilterJudgement {
  try {
    if (!isObject(filter)) throw new FilterFault('filter', rules.filter);
    if (new TextEncoder().encode(JSON.stringify(filter)).length > maxFilterBytes) {
      throw new FilterFault('filter', `a filter has at most ${maxFilterBytes} bytes`);
    }
    const condition = compile(filter, 'filter', { depth: 1, count: 0 });
    return {
      ok: true,
      filter: {
        decide(data) {
          try {
            return condition(data, { left: maxFilterSteps });
          } catch (error) {
            if (error instanceof TooManySteps) return null;
            throw error;
          }
        },
      },
    };
  } catch (error) {
    if (error instanceof FilterFault) return { ok: false, place: error.place, rule: error.rule };
    throw error;
  }
}

class FilterFault extends Error {
  constructor(
    readonly place: string,
    readonly rule: string,
  ) {
    super(rule);
  }
}

class TooManySteps extends Error {}

interface Budget {
  left: number;
}

/** Null: it holds. Else the place that says no. */
type Condition = (data: FilterData, budget: Budget) => string | null;

interface Compiling {
  readonly depth: number;
  /** Conditions so far; shared by all levels. */
  count: number;
}

/** What stands for a value that isn't there. */
const missing = Symbol('missing');

const rules = {
  filter: `a filter is a JSON object such as {"amount": {"$gte": 100}}, or null for none`,
  operators: `known operators are ${filterOperators.join(', ')}`,
  digits: `a number in a filter is a whole number up to ${Number.MAX_SAFE_INTEGER}, or has at most ${maxDigits} digits: others would be rounded`,
};

function compile(given: unknown, place: string, state: Compiling): Condition {
  if (state.depth > maxFilterDepth)
    throw new FilterFault(place, `a filter nests at most ${maxFilterDepth} levels deep`);
  count(state, place);
  if (Array.isArray(given)) {
    return all(given.map((one, index) => compile(one, `${place}.${index}`, deeper(state))));
  }
  if (!isObject(given)) return anyElement(equals(literal(given, place)), place);
  const names = Object.keys(given);
  const operators = names.filter((name) => name.startsWith('$'));
  const unknown = operators.find((name) => !(filterOperators as readonly string[]).includes(name));
  if (unknown !== undefined) throw new FilterFault(`${place}.${printable(unknown)}`, rules.operators);
  const long = names.find((name) => name.length > maxNameLength);
  if (long !== undefined) {
    throw new FilterFault(`${place}.${printable(long)}`, `a name in a filter has at most ${maxNameLength} characters`);
  }
  return all(
    names.map((name) => {
      const inner = `${place}.${printable(name)}`;
      return name.startsWith('$')
        ? operator(name as Operator, given[name], inner, state)
        : property(name, compile(given[name], inner, deeper(state)), inner);
    }),
  );
}

function operator(name: Operator, operand: unknown, place: string, state: Compiling): Condition {
  count(state, place);
  switch (name) {
    case '$eq':
      return anyElement(equals(literal(operand, place)), place);
    case '$neq':
      return not(anyElement(equals(literal(operand, place)), place), place);
    case '$in':
      return anyElement(isOneOf(literals(operand, place, state)), place);
    case '$nin':
      return not(anyElement(isOneOf(literals(operand, place, state)), place), place);
    case '$gt':
      return anyElement(
        compares(operand, place, (order) => order > 0),
        place,
      );
    case '$gte':
      return anyElement(
        compares(operand, place, (order) => order >= 0),
        place,
      );
    case '$lt':
      return anyElement(
        compares(operand, place, (order) => order < 0),
        place,
      );
    case '$lte':
      return anyElement(
        compares(operand, place, (order) => order <= 0),
        place,
      );
    case '$startsWith': {
      const text = textOperand(operand, place);
      return anyElement((value) => typeof value === 'string' && value.startsWith(text), place);
    }
    case '$endsWith': {
      const text = textOperand(operand, place);
      return anyElement((value) => typeof value === 'string' && value.endsWith(text), place);
    }
    case '$exist': {
      if (typeof operand !== 'boolean') throw new FilterFault(place, '$exist takes true or false');
      return (data) => ((data !== missing) === operand ? null : place);
    }
    case '$not':
      return not(compile(operand, place, deeper(state)), place);
    case '$and':
      return all(conditions(operand, place, state));
    case '$or': {
      const any = conditions(operand, place, state);
      return (data, budget) => (any.some((condition) => condition(data, budget) === null) ? null : place);
    }
  }
}

/** The value by this name; of an array, of any of its elements. */
function property(name: string, condition: Condition, place: string): Condition {
  return (data, budget) => {
    if (Array.isArray(data)) {
      for (const element of data) {
        spend(budget);
        if (isObject(element) && condition(valueOf(element, name), budget) === null) return null;
      }
      return data.length === 0 ? condition(missing, budget) : place;
    }
    spend(budget);
    return condition(isObject(data) ? valueOf(data, name) : missing, budget);
  };
}

function all(conditions: readonly Condition[]): Condition {
  return (data, budget) => {
    for (const condition of conditions) {
      const refusal = condition(data, budget);
      if (refusal !== null) return refusal;
    }
    return null;
  };
}

function not(condition: Condition, place: string): Condition {
  return (data, budget) => (condition(data, budget) === null ? place : null);
}

/** Does the value pass, or, where it is an array, one of its elements? What is missing never does. */
function anyElement(passes: (value: unknown) => boolean, place: string): Condition {
  return (data, budget) => {
    if (!Array.isArray(data)) {
      spend(budget);
      return data !== missing && passes(data) ? null : place;
    }
    for (const element of data) {
      spend(budget);
      if (passes(element)) return null;
    }
    return place;
  };
}

type Literal = string | boolean | null | number;

function equals(wanted: Literal): (value: unknown) => boolean {
  if (typeof wanted !== 'number') return (value) => value === wanted;
  return (value) => isNumber(value) && compareNumbers(value, wanted) === 0;
}

function isOneOf(wanted: readonly Literal[]): (value: unknown) => boolean {
  const tests = wanted.map(equals);
  return (value) => tests.some((test) => test(value));
}

/** Numbers with numbers, texts with texts (by code units: dates in RFC 3339 of one zone compare as times do). */
function compares(operand: unknown, place: string, holds: (order: number) => boolean): (value: unknown) => boolean {
  if (typeof operand === 'string') {
    return (value) => typeof value === 'string' && holds(value < operand ? -1 : value > operand ? 1 : 0);
  }
  if (typeof operand !== 'number') throw new FilterFault(place, 'a comparison takes a number or a text');
  const wanted = literal(operand, place) as number;
  return (value) => isNumber(value) && holds(compareNumbers(value, wanted));
}

function literal(given: unknown, place: string): Literal {
  if (given === null || typeof given === 'string' || typeof given === 'boolean') return given;
  if (typeof given !== 'number') throw new FilterFault(place, 'here stands a text, a number, true, false or null');
  if (!isExactlyKnown(given, maxDigits)) throw new FilterFault(place, rules.digits);
  return given;
}

function literals(given: unknown, place: string, state: Compiling): Literal[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw new FilterFault(place, 'takes a list of at least one text, number, true, false or null');
  }
  return given.map((one, index) => {
    count(state, place);
    return literal(one, `${place}.${index}`);
  });
}

function conditions(given: unknown, place: string, state: Compiling): Condition[] {
  if (!Array.isArray(given) || given.length === 0)
    throw new FilterFault(place, 'takes a list of at least one condition');
  return given.map((one, index) => compile(one, `${place}.${index}`, deeper(state)));
}

function textOperand(given: unknown, place: string): string {
  if (typeof given !== 'string' || given === '') throw new FilterFault(place, 'takes a text that is not empty');
  return given;
}

function count(state: Compiling, place: string): void {
  if (++state.count > maxFilterConditions) {
    throw new FilterFault(place, `a filter has at most ${maxFilterConditions} conditions and values`);
  }
}

/** One level down; the count goes on. */
function deeper(state: Compiling): Compiling {
  const { depth } = state;
  return {
    depth: depth + 1,
    get count() {
      return state.count;
    },
    set count(value) {
      state.count = value;
    },
  };
}

function spend(budget: Budget): void {
  if (--budget.left < 0) throw new TooManySteps();
}

function valueOf(object: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : missing;
}

function isNumber(value: unknown): value is JsonNumber | number {
  return (
    typeof value === 'number' || (typeof value === 'object' && value !== null && 'decimal' in value && !isPlain(value))
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && isPlain(value);
}

const isPlain = (value: object): boolean => Object.getPrototypeOf(value) === Object.prototype;

/** Names in a filter are of any content; an answer has to stay short and printable. */
function printable(name: string): string {
  return name.slice(0, 64).replace(/[\p{Cc}\p{Cs}]/gu, '\ufffd');
}
