import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { IdPipe } from '../../http/id.pipe.js';
import { noQuery, tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import {
  createdEndpointDto,
  endpointDto,
  endpointListDto,
  endpointQuery,
  type EndpointQuery,
  newEndpointDto,
  type NewEndpointBody,
} from './endpoints.dto.js';
import { EndpointsService } from './endpoints.service.js';

const idParam = { name: 'id', description: 'The endpoint, `we_…`.', example: 'we_01KC0000000000000000000001' };
const endpointId = new IdPipe('endpoint');

@ApiTags('endpoints')
@ApiBearerAuth()
@Controller('v1/webhooks/subscriptions')
export class EndpointsController {
  constructor(private readonly endpoints: EndpointsService) {}

  @Post()
  @ApiOperation({
    summary: 'Create an endpoint',
    description: 'It is active at once. The answer holds its secret, once.',
  })
  @ApiResponse({ status: 201, description: 'Created.', standardSchema: createdEndpointDto })
  @ApiProblems(400, 403, 413, 415, 422)
  create(
    @CurrentAccess() access: Access,
    @Body({ schema: newEndpointDto }) body: NewEndpointBody,
    @Query({ schema: noQuery }) _query: object,
  ) {
    return this.endpoints.create(access, body);
  }

  @Get()
  @ApiOperation({ summary: 'List endpoints', description: 'Newest first, without those that were deleted.' })
  @ApiResponse({ status: 200, description: 'A page of endpoints.', standardSchema: endpointListDto })
  @ApiProblems(403, 422)
  list(@CurrentAccess() access: Access, @Query({ schema: endpointQuery }) query: EndpointQuery) {
    return this.endpoints.list(tenantOf(access, query.tenant_id), query);
  }

  @Get(':id')
  @ApiOperation({ summary: 'Get an endpoint', description: 'Its secret is never shown again.' })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The endpoint.', standardSchema: endpointDto })
  @ApiProblems(403, 404, 422)
  get(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.endpoints.get(tenantOf(access, query.tenant_id), id);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({
    summary: 'Delete an endpoint',
    description: 'What waits for it is cancelled with the reason `endpoint_deleted`; a request in flight finishes.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 204, description: 'Deleted.' })
  @ApiProblems(403, 404, 422)
  delete(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.endpoints.delete(tenantOf(access, query.tenant_id), id);
  }
}
