import { HttpException } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { isDatabaseAway } from '../../database/database-errors.js';
import { Problem } from './problem.js';

/** What of a request an answer may name. */
type Place = Pick<FastifyRequest, 'routeOptions'>;

/** Turns whatever was thrown into an answer; null when it is our own fault and has to be logged. */
export function toProblem(error: unknown, request: Place | null = null): Problem | null {
  if (error instanceof Problem) return error;
  const fastify = fromFastify(error, request);
  if (fastify) return fastify;
  if (error instanceof HttpException) return fromHttpException(error);
  if (isDatabaseAway(error)) {
    return new Problem(
      503,
      'database_unavailable',
      'The request was not confirmed by the database. Repeat it in a moment, with the same Idempotency-Key',
      { headers: { 'Retry-After': '2' } },
    );
  }
  return null;
}

export const noSuchPath = (): Problem =>
  new Problem(404, 'not_found', 'There is no such path; the paths are listed under /docs');

export const unsupportedMediaType = (): Problem =>
  new Problem(415, 'unsupported_media_type', 'Send JSON with the header Content-Type: application/json', {
    field: 'Content-Type',
  });

/** Fastify's own errors, by their codes. */
function fromFastify(error: unknown, request: Place | null): Problem | null {
  const { code, statusCode } = (typeof error === 'object' && error !== null ? error : {}) as {
    code?: unknown;
    statusCode?: unknown;
  };
  if (typeof code !== 'string' || !code.startsWith('FST_')) return null;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new Problem(413, 'too_large', tooLarge(request));
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_INVALID_TYPE':
      return unsupportedMediaType();
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new Problem(400, 'invalid_request', 'The body is not as long as its Content-Length says', {
        field: 'Content-Length',
      });
    case 'FST_ERR_BAD_URL':
      return new Problem(400, 'invalid_request', 'The path is not valid percent-encoded UTF-8');
    // No id of ours is that long.
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return noSuchPath();
    default:
      return typeof statusCode === 'number' && statusCode < 500
        ? new Problem(statusCode, 'invalid_request', 'The request is not valid HTTP')
        : null;
  }
}

function tooLarge(request: Place | null): string {
  const { bodyLimit, url } = request?.routeOptions ?? {};
  if (bodyLimit === undefined) return 'The body is larger than this call takes';
  const setting =
    url === '/v1/events/batch' || url === '/v1/event-types/import'
      ? 'POSTHORN_HTTP_BATCH_LIMIT_BYTES'
      : 'POSTHORN_HTTP_BODY_LIMIT_BYTES';
  return `This call takes a body of at most ${bodyLimit} bytes (${setting}): send less data, or a reference to it`;
}

function fromHttpException(error: HttpException): Problem {
  const status = error.getStatus();
  if (status === 404) return noSuchPath();
  return new Problem(status, status < 500 ? 'invalid_request' : 'internal_error', error.message);
}
