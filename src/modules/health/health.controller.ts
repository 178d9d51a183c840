import { Controller, Get, Inject, Res } from '@nestjs/common';
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { Public } from '../../http/access/access.guard.js';
import { readinessToken } from '../../http/tokens.js';

/** What `/readyz` asks of the process. */
export interface Readiness {
  database(): Promise<boolean>;
  temporal(): Promise<boolean>;
}

const livenessDto = z
  .object({ status: z.literal('ok').describe('The process answers.') })
  .meta({ id: 'Liveness', description: 'The process lives.' });

const readinessDto = z
  .object({
    status: z.enum(['ready', 'unavailable']).describe('`ready`: events are accepted.'),
    database: z.enum(['ok', 'unavailable']).describe('Whether Postgres answered within a second.'),
    temporal: z
      .enum(['ok', 'degraded'])
      .describe('`degraded`: Temporal is away. Events are accepted, and delivered when it is back.'),
  })
  .meta({ id: 'Readiness', description: 'What the process can do.' });

@ApiTags('health')
@Public()
@Controller()
export class HealthController {
  constructor(@Inject(readinessToken) private readonly readiness: Readiness) {}

  @Get('healthz')
  @ApiOperation({ summary: 'Is the process alive?', description: 'Looks at nothing else: restart it when this fails.' })
  @ApiResponse({ status: 200, description: 'It is.', standardSchema: livenessDto })
  healthz() {
    return { status: 'ok' };
  }

  @Get('readyz')
  @ApiOperation({
    summary: 'Can the process accept events?',
    description:
      '200 while Postgres is there. With Temporal away events are accepted all the same, and delivered when it is back: `temporal: degraded`.',
  })
  @ApiResponse({ status: 200, description: 'It can.', standardSchema: readinessDto })
  @ApiResponse({ status: 503, description: 'The database is away.', standardSchema: readinessDto })
  async readyz(@Res() reply: FastifyReply) {
    const [database, temporal] = await Promise.all([this.readiness.database(), this.readiness.temporal()]);
    const answer = {
      status: database ? 'ready' : 'unavailable',
      database: database ? 'ok' : 'unavailable',
      temporal: temporal ? 'ok' : 'degraded',
    };
    void reply.status(database ? 200 : 503).send(answer);
  }
}
