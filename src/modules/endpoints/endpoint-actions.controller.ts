import { Body, Controller, Get, HttpCode, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { referTo } from '../../http/openapi-schemas.js';
import { tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { etagHeader, withETag } from './endpoint-answer.js';
import { callReportDto, testSendDto } from './endpoint-calls.dto.js';
import { EndpointCallsService } from './endpoint-calls.service.js';
import { healthDto } from './endpoint-health.dto.js';
import { emptyBody, endpointId, idParam } from './endpoint-parameters.js';
import { type RenewalBody, renewalDto } from './endpoint-renewal.dto.js';
import { endpointDto } from './endpoints.dto.js';
import { EndpointsService } from './endpoints.service.js';

@ApiTags('endpoints')
@ApiBearerAuth()
@Controller('v1/webhooks/subscriptions/:id')
export class EndpointActionsController {
  constructor(
    private readonly endpoints: EndpointsService,
    private readonly calls: EndpointCallsService,
  ) {}

  @Post('verify')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Verify an endpoint again',
    description:
      'The first try follows at once, and the time to pass begins anew, also where it was over. A 409 `already_verified` where nothing is to be verified.',
  })
  @ApiParam(idParam)
  @ApiResponse({
    status: 202,
    description: 'Accepted: see `verification_state`.',
    headers: { ...etagHeader },
    standardSchema: endpointDto,
  })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  async verify(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: emptyBody }) _body: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return withETag(reply, await this.endpoints.verify(tenantOf(access, query.tenant_id), id));
  }

  @Post('ping')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Ping an endpoint',
    description:
      'Posts a signed `webhook.ping` now, in every status, and answers what came of it. It is no delivery, and counts for nothing.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'What came of it, good or bad.', standardSchema: callReportDto })
  @ApiProblems(400, 403, 404, 413, 415, 422, 429)
  ping(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: emptyBody }) _body: unknown,
  ) {
    return this.calls.ping(tenantOf(access, query.tenant_id), id);
  }

  @Post('test')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Send a test to an endpoint',
    description:
      'Posts this data now, in the endpoint’s own envelope and signed, in every status, and answers what came of it. It is no delivery, and counts for nothing.',
  })
  @ApiParam(idParam)
  @ApiBody({ schema: referTo(testSendDto), required: false })
  @ApiResponse({ status: 200, description: 'What came of it, good or bad.', standardSchema: callReportDto })
  @ApiProblems(400, 403, 404, 413, 415, 422, 429)
  test(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body() body: Buffer | undefined,
  ) {
    return this.calls.test(tenantOf(access, query.tenant_id), id, body ?? Buffer.alloc(0));
  }

  @Post('pause')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Pause an endpoint',
    description:
      'What waits for it, and what is published from now on, is `held`, and spends no attempt; a request in flight finishes. One that is paused already stays as it is. A 409 `endpoint_state_conflict` where it is disabled or expired.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The endpoint.', headers: { ...etagHeader }, standardSchema: endpointDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  async pause(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: emptyBody }) _body: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return withETag(reply, await this.endpoints.pause(tenantOf(access, query.tenant_id), id));
  }

  @Post('resume')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Resume a paused endpoint',
    description:
      'What is held is released, oldest first: one at a time until the endpoint answers, then 1, 2, 4 … a second. One that was never verified is `pending_verification` again. One that is not paused stays as it is. A 409 `endpoint_state_conflict` where it is disabled or expired.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The endpoint.', headers: { ...etagHeader }, standardSchema: endpointDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  async resume(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: emptyBody }) _body: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return withETag(reply, await this.endpoints.resume(tenantOf(access, query.tenant_id), id));
  }

  @Post('enable')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Enable a disabled endpoint',
    description:
      'It gets what is published from now on, one at a time until it answers. Dead letters stay dead letters. One that was never verified is `pending_verification` again. One that takes events already stays as it is. A 409 `endpoint_state_conflict` where it is paused or expired, or its `expires_at` has passed.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The endpoint.', headers: { ...etagHeader }, standardSchema: endpointDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  async enable(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: emptyBody }) _body: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return withETag(reply, await this.endpoints.enable(tenantOf(access, query.tenant_id), id));
  }

  @Post('renew')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Renew an endpoint',
    description:
      'Sets `expires_at`. One that has expired gets what is published from now on; dead letters stay dead letters. One that is paused or disabled stays so.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The endpoint.', headers: { ...etagHeader }, standardSchema: endpointDto })
  @ApiProblems(400, 403, 404, 413, 415, 422)
  async renew(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: renewalDto }) body: RenewalBody,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return withETag(reply, await this.endpoints.renew(tenantOf(access, query.tenant_id), id, body));
  }

  @Get('health')
  @ApiOperation({
    summary: 'How an endpoint is',
    description: 'Its state, what that is based on, what waits for it, what its owner was told, and what comes next.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'Its health.', standardSchema: healthDto })
  @ApiProblems(403, 404, 422)
  health(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.endpoints.health(tenantOf(access, query.tenant_id), id);
  }
}
