import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../../telemetry/logger.js';
import { Problem } from './problem.js';
import { toProblem } from './to-problem.js';

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
      toProblem(error) ?? new Problem(500, 'internal_error', `Tell the operators the request id ${request.id}`);
    if (problem.status >= 500) {
      const fields = { request_id: request.id, method: request.method, path: request.url.split('?')[0], err: error };
      if (problem.status === 500) this.log.error(fields, 'request failed');
      else this.log.warn(fields, 'request refused: the database is away');
    }
    void reply
      .status(problem.status)
      .headers(problem.options.headers ?? {})
      .type('application/problem+json; charset=utf-8')
      .send(JSON.stringify(problem));
  }
}
