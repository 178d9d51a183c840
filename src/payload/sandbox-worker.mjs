// @ts-check
/**
 * Runs what others wrote (JSON Schemas, JSONata) in a thread of its own, which its owner ends when it takes too long: neither a regular
 * expression nor an endless recursion can hold up anybody else. Plain JavaScript, since a worker is loaded from a file as it is.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import jsonata from 'jsonata';

const { timeoutMs, maxOutputBytes } = workerData;
const mostCached = 200;
/** Not the same every time, or beyond what was checked. */
const withheld = ['now', 'millis', 'random', 'shuffle', 'eval'];
/** Values that a conversion may make of one. */
const maxSequence = 100_000;
const maxStack = 500;
const maxErrors = 5;
/** Marks a number that a double can't hold: it can be moved, but not computed with. */
const mark = '\u0001posthorn-number:';
const marked = /"\\u0001posthorn-number:(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)"/g;
/** Of valid JSON: each text, and each number outside of texts. */
const textOrNumber = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const maxDigits = 15;

class Refusal extends Error {}

/** @type {Map<string, unknown>} */
const compiled = new Map();

/** @param {string} key @param {() => unknown} make */
function cached(key, make) {
  let value = compiled.get(key);
  if (value === undefined) value = make();
  else compiled.delete(key);
  compiled.set(key, value);
  if (compiled.size > mostCached) compiled.delete(compiled.keys().next().value ?? '');
  return value;
}

const ajvOptions = { strict: false, allErrors: true, logger: false, addUsedSchema: false };
/** Judges schemas: compiling the rules for them takes longer than most schemas do. */
const judge = new Ajv2020(ajvOptions);

/** @param {string} text */
function validatorOf(text) {
  return cached(`schema ${text}`, () => {
    const schema = JSON.parse(text);
    try {
      if (!judge.validateSchema(schema)) throw new Refusal(judge.errorsText(judge.errors, { dataVar: 'schema' }));
      // One each: a schema's own ids meet no other's. Unknown keywords are annotations, as the standard has it.
      const ajv = new Ajv2020({ ...ajvOptions, validateSchema: false, meta: false });
      addFormats.default(ajv, { mode: 'fast' });
      return ajv.compile(schema);
    } catch (error) {
      throw new Refusal(`the schema can't be used: ${messageOf(error)}`);
    }
  });
}

/** @param {string} expression */
function expressionOf(expression) {
  return cached(`expression ${expression}`, () => {
    try {
      const made = jsonata(expression, { timeout: timeoutMs, stack: maxStack, sequence: maxSequence });
      for (const name of withheld) made.assign(name, undefined);
      return made;
    } catch (error) {
      throw new Refusal(`the expression can't be used: ${messageOf(error)}`);
    }
  });
}

/** @param {string} schema @param {unknown} data */
function faultsOf(schema, data) {
  const validate = /** @type {import('ajv').ValidateFunction} */ (validatorOf(schema));
  if (validate(data)) return [];
  return (validate.errors ?? []).slice(0, maxErrors).map(({ instancePath, schemaPath, message, params, keyword }) => ({
    instancePath: instancePath.slice(0, 300),
    schemaPath: schemaPath.slice(0, 300),
    message: `${message ?? 'is not valid'}${detailOf(keyword, params)}`.slice(0, 300),
  }));
}

/** @param {string} keyword @param {Record<string, unknown>} params */
function detailOf(keyword, params) {
  if (keyword === 'enum') return `: ${JSON.stringify(params.allowedValues)}`;
  if (keyword === 'const') return `: ${JSON.stringify(params.allowedValue)}`;
  if (keyword === 'additionalProperties') return `: ${JSON.stringify(params.additionalProperty)}`;
  if (keyword === 'unevaluatedProperties') return `: ${JSON.stringify(params.unevaluatedProperty)}`;
  return '';
}

/** @param {string} json */
function markNumbers(json) {
  return json.replace(textOrNumber, (token) =>
    token.startsWith('"') || survives(token) ? token : JSON.stringify(mark + token),
  );
}

/** Does a number come through a double as what it is? @param {string} number */
function survives(number) {
  if (number.length <= maxDigits && !/[eE]/.test(number)) return true;
  const value = Number(number);
  const digits = number
    .replace(/[eE].*/, '')
    .replace(/[-.]/g, '')
    .replace(/^0+/, '')
    .replace(/0+$/, '');
  return Number.isFinite(value) && digits.length <= maxDigits && (value !== 0 || digits === '');
}

/**
 * One step: `text` is JSON in which inexact numbers are marked texts.
 * @param {string} text @param {{ expression: string, schema: string | null, to: string }} step
 */
async function convertOnce(text, { expression, schema, to }) {
  const made = /** @type {import('jsonata').Expression} */ (expressionOf(expression));
  let result;
  try {
    result = await made.evaluate(JSON.parse(text));
  } catch (error) {
    throw new Refusal(`the conversion to ${to} failed: ${messageOf(error)}`);
  }
  const written = result === undefined ? undefined : JSON.stringify(result, plain);
  if (written === undefined) throw new Refusal(`the conversion to ${to} makes nothing of this data`);
  if (Buffer.byteLength(written) > maxOutputBytes) {
    throw new Refusal(`the conversion to ${to} makes more than ${maxOutputBytes} bytes`);
  }
  const restored = written.replace(marked, '$1');
  if (restored.includes('\\u0001posthorn-number:')) {
    throw new Refusal(`the conversion to ${to} computes with a number that is too long for it`);
  }
  const [fault] = schema === null ? [] : faultsOf(schema, JSON.parse(restored));
  if (fault) {
    throw new Refusal(
      `what the conversion to ${to} makes does not fit its schema: ${fault.instancePath || 'it'} ${fault.message} (${fault.schemaPath})`,
    );
  }
  return written;
}

/** A function in a result would be dropped without a word. @param {string} _ @param {unknown} value */
function plain(_, value) {
  if (typeof value === 'function' || (typeof value === 'object' && value !== null && '_jsonata_lambda' in value)) {
    throw new Refusal('a conversion makes data, not a function');
  }
  return value;
}

/** @param {any} task */
async function run(task) {
  switch (task.kind) {
    case 'validate':
      return task.items.map((/** @type {{ schema: string, data: string }} */ { schema, data }) =>
        faultsOf(schema, JSON.parse(data)),
      );
    case 'check':
      if (task.schema !== undefined) validatorOf(task.schema);
      if (task.expression !== undefined) expressionOf(task.expression);
      return null;
    case 'convert': {
      let text = markNumbers(task.data);
      for (const step of task.steps) text = await convertOnce(text, step);
      return text.replace(marked, '$1');
    }
    default:
      throw new Error(`unknown task ${task.kind}`);
  }
}

/** @param {unknown} error */
function messageOf(error) {
  if (error instanceof Refusal) return error.message;
  const { message, code, position } = /** @type {{ message?: unknown, code?: unknown, position?: unknown }} */ (
    error ?? {}
  );
  const where = typeof position === 'number' ? ` at character ${position}` : '';
  const text = typeof message === 'string' ? message : 'it is not valid';
  return `${text}${where}${typeof code === 'string' ? ` (${code})` : ''}`.replaceAll(mark, '').slice(0, 300);
}

/** @param {unknown} message */
const say = (message) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  parentPort?.postMessage(message);
};

parentPort?.on('message', ({ id, task }) => {
  run(task).then(
    (value) => say({ id, value }),
    (error) => say({ id, refused: messageOf(error) }),
  );
});
// What is slow the first time is done before any time is counted.
validatorOf('{"type":"object","properties":{"a":{"type":"string","format":"date-time"}}}');
await convertOnce('{"a":1}', { expression: '{"b": a}', schema: '{"type":"object"}', to: 'none' });
say('ready');
