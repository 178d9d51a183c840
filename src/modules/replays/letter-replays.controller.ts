import { Body, Controller, Headers, Post, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiHeader, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { idempotencyHeader, replayedHeader } from '../../http/idempotency.js';
import { noQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { dryRunDto, newLetterReplayDto, type NewLetterReplayBody, replayDto } from './replays.dto.js';
import { ReplaysService } from './replays.service.js';
import { sendReplay } from './send-replay.js';

@ApiTags('replays')
@ApiBearerAuth()
@Controller('v1/dead-letters/replay')
export class LetterReplaysController {
  constructor(private readonly replays: ReplaysService) {}

  @Post()
  @ApiOperation({
    summary: 'Send many dead letters again',
    description:
      'Makes a replay of the letters that are open, by their ids or by a filter. A letter that is resolved before its turn comes is skipped.',
  })
  @ApiHeader(idempotencyHeader('body', 'another one'))
  @ApiResponse({ status: 200, description: 'Of a dry run: how many it would be.', standardSchema: dryRunDto })
  @ApiResponse({
    status: 202,
    description: 'Committed: the set is fixed.',
    headers: { ...replayedHeader },
    standardSchema: replayDto,
  })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  async create(
    @CurrentAccess() access: Access,
    @Query({ schema: noQuery }) _query: object,
    @Body({ schema: newLetterReplayDto }) body: NewLetterReplayBody,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
    @Res() reply: FastifyReply,
  ) {
    const tenantId = tenantOf(access, body.tenant_id);
    sendReplay(reply, await this.replays.replayLetters({ access, tenantId, idempotencyKey }, body));
  }
}
