import { Body, Controller, Headers, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiHeader, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { idempotencyHeader, replayedHeader } from '../../http/idempotency.js';
import { IdPipe } from '../../http/id.pipe.js';
import { tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { dryRunDto, recoveryDto, type RecoveryBody, replayDto } from './replays.dto.js';
import { ReplaysService } from './replays.service.js';
import { sendReplay } from './send-replay.js';

const endpointId = new IdPipe('endpoint');

@ApiTags('replays')
@ApiBearerAuth()
@Controller('v1/webhooks/subscriptions/:id/recover')
export class RecoverController {
  constructor(private readonly replays: ReplaysService) {}

  @Post()
  @ApiOperation({
    summary: 'Recover an endpoint',
    description:
      'Makes a replay of all deliveries to it that failed since then, and of all events that it missed, such as while it was disabled or expired: accepted since then, of types that it wants today, and never a delivery for it. A 409 `endpoint_unavailable` while it is disabled or expired.',
  })
  @ApiParam({ name: 'id', description: 'The endpoint, `we_…`.', example: 'we_01KC0000000000000000000001' })
  @ApiHeader(idempotencyHeader('body', 'another one'))
  @ApiResponse({ status: 200, description: 'Of a dry run: how many it would be.', standardSchema: dryRunDto })
  @ApiResponse({
    status: 202,
    description: 'Committed: the set is fixed.',
    headers: { ...replayedHeader },
    standardSchema: replayDto,
  })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  async recover(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: recoveryDto }) body: RecoveryBody,
    @Headers('idempotency-key') idempotencyKey: string | undefined,
    @Res() reply: FastifyReply,
  ) {
    const tenantId = tenantOf(access, query.tenant_id);
    sendReplay(reply, await this.replays.recover({ access, tenantId, idempotencyKey }, id, body));
  }
}
