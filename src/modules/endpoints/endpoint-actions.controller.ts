import { Body, Controller, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { referTo } from '../../http/openapi-schemas.js';
import { tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { callReportDto, testSendDto } from './endpoint-calls.dto.js';
import { EndpointCallsService } from './endpoint-calls.service.js';
import { emptyBody, endpointId, idParam } from './endpoint-parameters.js';
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
  @ApiResponse({ status: 202, description: 'Accepted: see `verification_state`.', standardSchema: endpointDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  async verify(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: emptyBody }) _body: unknown,
  ) {
    const { endpoint } = await this.endpoints.verify(tenantOf(access, query.tenant_id), id);
    return endpoint;
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
}
