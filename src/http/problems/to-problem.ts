import { HttpException } from '@nestjs/common';
import { isDatabaseAway } from '../../database/database-errors.js';
import { Problem } from './problem.js';

/** Turns whatever was thrown into an answer; null when it is our own fault and has to be logged. */
export function toProblem(error: unknown): Problem | null {
  if (error instanceof Problem) return error;
  const fastify = fromFastify(error);
  if (fastify) return fastify;
  if (error instanceof HttpException) return fromHttpException(error);
  if (isDatabaseError(error) && isDatabaseAway(error)) {
    return new Problem(
      503,
      'database_unavailable',
      'Nothing was stored. Repeat the request, with the same Idempotency-Key, in a moment',
      {
        headers: { 'Retry-After': '2' },
      },
    );
  }
  return null;
}

/** Fastify's own errors, by their codes. */
function fromFastify(error: unknown): Problem | null {
  const { code, statusCode } = (typeof error === 'object' && error !== null ? error : {}) as {
    code?: unknown;
    statusCode?: unknown;
  };
  if (typeof code !== 'string' || !code.startsWith('FST_')) return null;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new Problem(413, 'too_large', 'The body is larger than this call takes (POSTHORN_HTTP_BODY_LIMIT_BYTES)');
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new Problem(415, 'unsupported_media_type', 'Send JSON with the header Content-Type: application/json', {
        field: 'Content-Type',
      });
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return new Problem(400, 'malformed_json', 'The body is empty: send a JSON object');
    default:
      return typeof statusCode === 'number' && statusCode < 500
        ? new Problem(statusCode, 'invalid_request', 'The request is not valid HTTP')
        : null;
  }
}

function fromHttpException(error: HttpException): Problem {
  const status = error.getStatus();
  if (status === 404) return new Problem(404, 'not_found', 'There is no such path; the paths are listed under /docs');
  return new Problem(status, status < 500 ? 'invalid_request' : 'internal_error', error.message);
}

/** Whatever the driver throws has its mark: a code, or TypeORM's wrapper around it. Others' plain errors are bugs. */
function isDatabaseError(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, name, stack } = error as { code?: unknown; name?: unknown; stack?: unknown };
  return (
    typeof code === 'string' ||
    (typeof name === 'string' &&
      ['QueryFailedError', 'AggregateError', 'CannotExecuteNotConnectedError'].includes(name)) ||
    (typeof stack === 'string' && /[\\/]node_modules[\\/](pg|pg-pool|typeorm)[\\/]/.test(stack))
  );
}
