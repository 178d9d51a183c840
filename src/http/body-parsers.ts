import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.js';
import { Problem } from './problems/problem.js';

const batchPath = '/v1/events/batch';
const rawPaths = new Set(['/v1/events', batchPath]);
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Events keep their bytes; every other body is strict JSON in strict UTF-8. Anything else than JSON is a 415. */
export function installBodyParsers(
  fastify: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser' | 'addHook'>,
  limits: Config['http'],
): void {
  fastify.addHook('onRoute', (route) => {
    if (route.url === batchPath) route.bodyLimit = limits.batchLimitBytes;
  });
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser(['application/json'], { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (rawPaths.has(request.routeOptions.url ?? '')) return done(null, body);
    // Actions take a body or none.
    if (body.length === 0) return done(null, null);
    try {
      done(null, JSON.parse(utf8.decode(body)) as unknown);
    } catch (error) {
      done(
        error instanceof SyntaxError
          ? new Problem(400, 'malformed_json', `The body is not valid JSON: ${error.message}`)
          : new Problem(400, 'invalid_encoding', 'The body is not valid UTF-8: send JSON encoded as UTF-8'),
      );
    }
  });
}
