import { Body, Controller, Delete, Get, Headers, HttpCode, Param, Patch, Post, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiHeader, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { referTo } from '../../http/openapi-schemas.js';
import { noQuery, tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { etagHeader, withETag } from './endpoint-answer.js';
import { endpointId, idParam } from './endpoint-parameters.js';
import {
  createdEndpointDto,
  endpointDto,
  endpointListDto,
  endpointPatchDto,
  type EndpointPatchBody,
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
  @ApiOperation({
    summary: 'Create an endpoint',
    description:
      'It is `pending_verification` until it has shown that it wants our requests, or active at once where the configuration doesn’t ask for that. The answer holds its secret, once.',
  })
  @ApiResponse({ status: 201, description: 'Created.', headers: { ...etagHeader }, standardSchema: createdEndpointDto })
  @ApiProblems(400, 403, 413, 415, 422)
  async create(
    @CurrentAccess() access: Access,
    @Body({ schema: newEndpointDto }) body: NewEndpointBody,
    @Query({ schema: noQuery }) _query: object,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return withETag(reply, await this.endpoints.create(access, body));
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
  @ApiResponse({ status: 200, description: 'The endpoint.', headers: { ...etagHeader }, standardSchema: endpointDto })
  @ApiProblems(403, 404, 422)
  async get(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return withETag(reply, await this.endpoints.get(tenantOf(access, query.tenant_id), id));
  }

  @Patch(':id')
  @ApiOperation({
    summary: 'Change an endpoint',
    description:
      'Changes the settings that are named (RFC 7396, also as `application/merge-patch+json`). With `If-Match`, only if nobody changed them since. Another `url` clears the failure history, has to be verified where verification is required, and what waits is held until then.',
  })
  @ApiParam(idParam)
  @ApiHeader({
    name: 'If-Match',
    required: false,
    description: 'The `ETag` of the answer that the change is based on, a list of them, or `*`.',
    schema: { type: 'string', example: '"1"' },
  })
  @ApiBody({ schema: referTo(endpointPatchDto), required: true })
  @ApiResponse({ status: 200, description: 'The endpoint.', headers: { ...etagHeader }, standardSchema: endpointDto })
  @ApiProblems(400, 403, 404, 412, 413, 415, 422)
  async change(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: endpointPatchDto }) body: EndpointPatchBody,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    return withETag(reply, await this.endpoints.change(tenantOf(access, query.tenant_id), id, body, ifMatch));
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
