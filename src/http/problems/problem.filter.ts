import type { Socket } from 'node:net';
import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../../telemetry/logger.js';
import { Problem } from './problem.js';
import { toProblem } from './to-problem.js';

const contentType = 'application/problem+json; charset=utf-8';

/** Every error leaves as application/problem+json; our own faults are logged with what a search needs, and answered without a trace. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly log: Logger) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const problem =
      toProblem(error, request) ??
      new Problem(500, 'internal_error', `Tell the operators the request id ${request.id}`);
    if (problem.status >= 500) {
      const fields = { request_id: request.id, method: request.method, path: pathOf(request), err: error };
      if (problem.status === 500) this.log.error(fields, 'request failed');
      else this.log.warn(fields, 'request refused: the database is away');
    }
    void reply
      .status(problem.status)
      .headers(problem.options.headers ?? {})
      .type(contentType)
      .send(JSON.stringify(problem));
  }

  /** What isn't HTTP, or has too large headers, never becomes a request: there is only the socket to answer on. */
  answerSocket(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) return void socket.destroy();
    const [status, title, problem] =
      error.code === 'HPE_HEADER_OVERFLOW'
        ? ([431, 'Request Header Fields Too Large', 'The headers are larger than 16 KiB'] as const)
        : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
          ? ([408, 'Request Timeout', 'The request took longer than 30 seconds to arrive'] as const)
          : ([400, 'Bad Request', 'The request is not valid HTTP'] as const);
    const body = JSON.stringify(new Problem(status, 'invalid_request', problem));
    const head = [
      `HTTP/1.1 ${status} ${title}`,
      `Content-Type: ${contentType}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  }
}

/** Without the query, and without the token of a consent, which is worth as much as a secret. */
function pathOf({ url }: FastifyRequest): string | undefined {
  return url.split('?')[0]?.replace(/\/consent\/.*/, '/consent/…');
}
