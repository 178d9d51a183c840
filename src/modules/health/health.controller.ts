import { Controller, Get, Inject, Res } from '@nestjs/common';
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Public } from '../../http/access/access.guard.js';
import { readinessToken } from '../../http/tokens.js';

/** What `/readyz` asks of the process. */
export interface Readiness {
  database(): Promise<boolean>;
  temporal(): Promise<boolean>;
}

@ApiTags('health')
@Public()
@Controller()
export class HealthController {
  constructor(@Inject(readinessToken) private readonly readiness: Readiness) {}

  @Get('healthz')
  @ApiOperation({ summary: 'The process lives' })
  @ApiResponse({ status: 200, description: 'It does.' })
  healthz() {
    return { status: 'ok' };
  }

  @Get('readyz')
  @ApiOperation({
    summary: 'The process can accept events',
    description:
      '200 while Postgres is there. With Temporal away events are accepted all the same, and delivered when it is back: `temporal: degraded`.',
  })
  @ApiResponse({ status: 200, description: 'It can.' })
  @ApiResponse({ status: 503, description: 'The database is away.' })
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
