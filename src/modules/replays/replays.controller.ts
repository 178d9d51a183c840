import { Body, Controller, Get, Headers, HttpCode, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiHeader, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { idempotencyHeader, replayedHeader } from '../../http/idempotency.js';
import { IdPipe } from '../../http/id.pipe.js';
import { noQuery, tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import {
  dryRunDto,
  newReplayDto,
  type NewReplayBody,
  noBody,
  replayDetailDto,
  replayDto,
  replayListDto,
  replayQuery,
  type ReplayQuery,
} from './replays.dto.js';
import { sendReplay } from './send-replay.js';
import { ReplaysService } from './replays.service.js';

const idParam = { name: 'id', description: 'The replay, `rpl_…`.', example: 'rpl_01KC0000000000000000000005' };
const replayId = new IdPipe('replay');

@ApiTags('replays')
@ApiBearerAuth()
@Controller('v1/replays')
export class ReplaysController {
  constructor(private readonly replays: ReplaysService) {}

  @Post()
  @ApiOperation({
    summary: 'Send many deliveries again',
    description:
      'The set is fixed with the answer. Each of it opens its next round, at the rate given, once; what has succeeded meanwhile, or is on its way, is skipped. The job survives restarts. Endpoints’ own rate limits hold beside it.',
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
    @Body({ schema: newReplayDto }) body: NewReplayBody,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
    @Res() reply: FastifyReply,
  ) {
    const tenantId = tenantOf(access, body.tenant_id);
    sendReplay(reply, await this.replays.replayDeliveries({ access, tenantId, idempotencyKey }, body));
  }

  @Get()
  @ApiOperation({ summary: 'List replays', description: 'Newest first.' })
  @ApiResponse({ status: 200, description: 'A page of replays.', standardSchema: replayListDto })
  @ApiProblems(403, 422)
  list(@CurrentAccess() access: Access, @Query({ schema: replayQuery }) query: ReplayQuery) {
    return this.replays.list(tenantOf(access, query.tenant_id), query);
  }

  @Get(':id')
  @ApiOperation({ summary: 'Get a replay', description: 'With what became of its deliveries so far.' })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The replay.', standardSchema: replayDetailDto })
  @ApiProblems(403, 404, 422)
  get(
    @CurrentAccess() access: Access,
    @Param('id', replayId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.replays.get(tenantOf(access, query.tenant_id), id);
  }

  @Post(':id/pause')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Pause a replay',
    description: 'Nothing more is started; what was started goes on. Pausing it again changes nothing.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 202, description: 'Paused.', standardSchema: replayDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  pause(
    @CurrentAccess() access: Access,
    @Param('id', replayId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: noBody }) _body: unknown,
  ) {
    return this.replays.change(tenantOf(access, query.tenant_id), id, 'pause');
  }

  @Post(':id/resume')
  @HttpCode(202)
  @ApiOperation({ summary: 'Resume a replay', description: 'It goes on where it was paused.' })
  @ApiParam(idParam)
  @ApiResponse({ status: 202, description: 'Running again.', standardSchema: replayDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  resume(
    @CurrentAccess() access: Access,
    @Param('id', replayId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: noBody }) _body: unknown,
  ) {
    return this.replays.change(tenantOf(access, query.tenant_id), id, 'resume');
  }

  @Post(':id/cancel')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Cancel a replay',
    description: 'Nothing more is started, for good; what was started goes on, and can be cancelled one by one.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 202, description: 'Cancelled.', standardSchema: replayDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  cancel(
    @CurrentAccess() access: Access,
    @Param('id', replayId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: noBody }) _body: unknown,
  ) {
    return this.replays.change(tenantOf(access, query.tenant_id), id, 'cancel');
  }
}
