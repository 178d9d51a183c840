import type { FastifyReply } from 'fastify';
import type { ReplayAnswer } from './replays.service.js';

export function sendReplay(reply: FastifyReply, { statusCode, answer, replayed }: ReplayAnswer): void {
  if (replayed) void reply.header('Idempotency-Replayed', 'true');
  void reply.status(statusCode).type('application/json; charset=utf-8').send(answer);
}
