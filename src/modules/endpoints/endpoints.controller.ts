import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, CurrentTenant } from '../../http/access/access.js';
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

@ApiTags('endpoints')
@ApiBearerAuth()
@Controller('v1/webhooks/subscriptions')
export class EndpointsController {
  constructor(private readonly endpoints: EndpointsService) {}

  @Post()
  @ApiOperation({ summary: 'Create an endpoint', description: 'The answer holds its secret, once.' })
  @ApiResponse({ status: 201, standardSchema: createdEndpointDto })
  @ApiProblems(400, 401, 403, 415, 422)
  create(@CurrentAccess() access: Access, @Body({ schema: newEndpointDto }) body: NewEndpointBody) {
    return this.endpoints.create(access, body);
  }

  @Get()
  @ApiOperation({ summary: 'List endpoints, newest first' })
  @ApiResponse({ status: 200, standardSchema: endpointListDto })
  @ApiProblems(401, 422)
  list(@CurrentTenant() tenant: string, @Query({ schema: endpointQuery }) query: EndpointQuery) {
    return this.endpoints.list(tenant, query);
  }

  @Get(':id')
  @ApiOperation({ summary: 'One endpoint' })
  @ApiResponse({ status: 200, standardSchema: endpointDto })
  @ApiProblems(401, 404)
  get(@CurrentTenant() tenant: string, @Param('id') id: string) {
    return this.endpoints.get(tenant, id);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({
    summary: 'Delete an endpoint',
    description: 'What waits for it is cancelled with the reason `endpoint_deleted`.',
  })
  @ApiResponse({ status: 204, description: 'Deleted.' })
  @ApiProblems(401, 404)
  delete(@CurrentTenant() tenant: string, @Param('id') id: string) {
    return this.endpoints.delete(tenant, id);
  }
}
