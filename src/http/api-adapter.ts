import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config/config.js';
import { installBodyParsers } from './body-parsers.js';
import type { ProblemFilter } from './problems/problem.filter.js';
import { RouteList } from './route-list.js';

/**
 * Fastify under Nest, with one door for errors: those that arise before a route is reached (paths, bodies, headers) leave in the
 * same form as all others. Nest's own handlers would turn them into HttpExceptions first, without their codes.
 */
export class ApiAdapter extends FastifyAdapter {
  readonly #answer: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;
  readonly #routes = new RouteList();
  #stopping = false;

  constructor(limits: Config['http'], filter: ProblemFilter) {
    const answer = filter.answer.bind(filter);
    super({
      bodyLimit: limits.bodyLimitBytes,
      forceCloseConnections: 'idle',
      // While stopping, what still comes over an open connection is answered, and the connection closed.
      return503OnClosing: false,
      requestTimeout: 30_000,
      // Events may have ids of 200 characters.
      routerOptions: { maxParamLength: 600 },
      genReqId: () => randomUUID(),
      frameworkErrors: answer,
      clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) => filter.answerSocket(error, socket),
    });
    this.#answer = answer;
    const fastify = this.getInstance<FastifyInstance>();
    fastify.addHook('onRoute', ({ method, url }) => this.#routes.add(method, url));
    // Else a kept connection would hold the server open long after its last answer.
    fastify.addHook('onSend', (_request, reply, payload, done) => {
      if (this.#stopping) void reply.header('Connection', 'close');
      done(null, payload);
    });
    installBodyParsers(fastify, limits);
  }

  override beforeClose(): void {
    this.#stopping = true;
    super.beforeClose();
  }

  override setErrorHandler() {
    return this.getInstance<FastifyInstance>().setErrorHandler(this.#answer) as never;
  }

  override setNotFoundHandler() {
    return this.getInstance<FastifyInstance>().setNotFoundHandler((request, reply) =>
      this.#answer(this.#routes.missing(request.method, request.url), request, reply),
    ) as never;
  }
}
