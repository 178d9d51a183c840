import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.js';
import { JsonReader, JsonSyntaxError } from './json-reader.js';
import { printableName, Problem } from './problems/problem.js';
import { unsupportedMediaType } from './problems/to-problem.js';

const batchPath = '/v1/events/batch';
const rawPaths = new Set(['/v1/events', batchPath, '/v1/webhooks/subscriptions/:id/test']);
const importPath = '/v1/event-types/import';
/** Schemas nest deeper than anything else that is sent to us. */
const deepPaths = new Map([
  ['/v1/event-types/:name', 64],
  [importPath, 64],
]);
/** RFC 7396: only where something is changed. */
const mergePatchType = 'application/merge-patch+json';
/** Levels of arrays and objects: more than any body of ours has, and safe for the recursive code that reads it. */
const maxDepth = 16;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Published and test events keep their bytes; every other body is strict JSON in strict UTF-8. Anything else than JSON is a 415. */
export function installBodyParsers(
  fastify: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser' | 'addHook'>,
  limits: Config['http'],
): void {
  fastify.addHook('onRoute', (route) => {
    if (route.url === batchPath || route.url === importPath) route.bodyLimit = limits.batchLimitBytes;
  });
  fastify.removeAllContentTypeParsers();
  const types = ['application/json', mergePatchType];
  fastify.addContentTypeParser(types, { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (request.method !== 'PATCH' && request.headers['content-type']?.toLowerCase().startsWith(mergePatchType)) {
      return done(unsupportedMediaType());
    }
    if (rawPaths.has(request.routeOptions.url ?? '')) return done(null, body);
    try {
      done(null, parseBody(body, deepPaths.get(request.routeOptions.url ?? '') ?? maxDepth));
    } catch (error) {
      done(error as Error);
    }
  });
}

/**
 * The body's value, null where there is none: actions take a body or none.
 * @throws {Problem} when it isn't strict JSON, or says something twice.
 */
function parseBody(bytes: Buffer, maxDepth: number): unknown {
  if (bytes.length === 0) return null;
  const text = decodeBody(bytes);
  const { depth, repeated } = survey(text);
  if (depth > maxDepth) {
    throw new Problem(422, 'too_deep', `The body may nest arrays and objects at most ${maxDepth} levels deep`);
  }
  if (repeated !== null) {
    throw new Problem(422, 'duplicate_field', `${repeated} must be given once only`, { field: repeated });
  }
  return JSON.parse(text) as unknown;
}

/** @throws {Problem} when it isn't plain UTF-8. */
export function decodeBody(bytes: Buffer): string {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new Problem(400, 'invalid_encoding', 'The body is not valid UTF-8: send JSON encoded as UTF-8');
  }
  if (text.startsWith('\ufeff')) {
    throw new Problem(
      400,
      'invalid_encoding',
      'The body starts with a byte order mark (EF BB BF): send it without one',
    );
  }
  return text;
}

/** JSON.parse alone would take the last of two equal fields without a word. */
function survey(text: string): Survey {
  try {
    const reader = new JsonReader(text);
    const found = surveyValue(reader, surveyedLevels);
    reader.expectEnd();
    return found;
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new Problem(400, 'malformed_json', `The body is not valid JSON: ${error.message}`);
  }
}

interface Survey {
  readonly depth: number;
  /** A field that is there twice, null where none is. */
  readonly repeated: string | null;
}

/** Fields, and the names inside of a field, such as headers. */
const surveyedLevels = 2;

function surveyValue(reader: JsonReader, levels: number): Survey {
  if (levels === 0 || reader.peek() !== 'object') return { depth: reader.readValue().depth, repeated: null };
  const seen = new Set<string>();
  let depth = 1;
  let repeated: string | null = null;
  reader.readObject((key) => {
    const name = printableName(key);
    if (seen.has(key)) repeated ??= name;
    seen.add(key);
    const inner = surveyValue(reader, levels - 1);
    if (inner.repeated !== null) repeated ??= `${name}.${inner.repeated}`;
    depth = Math.max(depth, 1 + inner.depth);
  });
  return { depth, repeated };
}
