import { Controller, Get, Inject, Res } from '@nestjs/common';
import { ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { Public } from '../../http/access/access.guard.js';
import { timestamp } from '../../http/text.dto.js';
import { type GapCounts, totalOf } from '../../domain/findings.js';
import { readinessToken } from '../../http/tokens.js';

/** The last comparison of what was accepted with what became of it: numbers only, since everybody may read them. */
export interface ReconciliationSummary {
  readonly finishedAt: string;
  readonly gaps: GapCounts;
  readonly repaired: GapCounts;
  readonly lost: { readonly foundAt: string; readonly count: number } | null;
}

/** What `/readyz` asks of the process. */
export interface Readiness {
  database(): Promise<boolean>;
  temporal(): Promise<boolean>;
  /** Null before the first run, and where nobody can say. */
  reconciliation(): Promise<ReconciliationSummary | null>;
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
    reconciliation: z
      .object({
        finished_at: timestamp().describe('When the last comparison ended; they run every ten minutes.'),
        status: z.enum(['ok', 'gaps']).describe('`gaps`: something is missing or late; the log names some of it.'),
        gaps: z
          .record(z.string(), z.int())
          .meta({ description: 'What was found and left, by kind.', example: { waiting_overdue: 3 } }),
        repaired: z.record(z.string(), z.int()).describe('What was put right, by kind.'),
        lost: z
          .object({
            found_at: timestamp().describe('When that was seen.'),
            deliveries: z.int().describe('Deliveries that Temporal worked on and the database does not know.'),
          })
          .nullable()
          .describe('Set for a week after the database turned out to be older than Temporal, as after a restore.'),
      })
      .nullable()
      .describe('The last comparison of what was accepted with what became of it; null before the first one.'),
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
    const [database, temporal, reconciliation] = await Promise.all([
      this.readiness.database(),
      this.readiness.temporal(),
      this.readiness.reconciliation(),
    ]);
    const answer = {
      status: database ? 'ready' : 'unavailable',
      database: database ? 'ok' : 'unavailable',
      temporal: temporal ? 'ok' : 'degraded',
      reconciliation: reconciliation && toReconciliation(reconciliation),
    };
    void reply.status(database ? 200 : 503).send(answer);
  }
}

function toReconciliation({ finishedAt, gaps, repaired, lost }: ReconciliationSummary) {
  return {
    finished_at: finishedAt,
    status: totalOf(gaps) === 0 ? 'ok' : 'gaps',
    gaps,
    repaired,
    lost: lost && { found_at: lost.foundAt, deliveries: lost.count },
  };
}
