import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { IdPipe } from '../../http/id.pipe.js';
import { referTo } from '../../http/openapi-schemas.js';
import { tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { endpointId, idParam } from './endpoint-parameters.js';
import {
  rotatedSecretDto,
  rotationBody,
  type RotationBody,
  rotationDto,
  secretListDto,
} from './endpoint-secrets.dto.js';
import { EndpointSecretsService } from './endpoint-secrets.service.js';

const secretParam = {
  name: 'secret_id',
  description: 'The secret, `sec_…`.',
  example: 'sec_01KC0000000000000000000003',
};
const secretId = new IdPipe('secret');

@ApiTags('endpoints')
@ApiBearerAuth()
@Controller('v1/webhooks/subscriptions/:id/secrets')
export class EndpointSecretsController {
  constructor(private readonly secrets: EndpointSecretsService) {}

  @Get()
  @ApiOperation({ summary: 'List the secrets of an endpoint', description: 'Newest first, never their values.' })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'Those that sign now.', standardSchema: secretListDto })
  @ApiProblems(403, 404, 422)
  list(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.secrets.list(tenantOf(access, query.tenant_id), id);
  }

  @Post()
  @ApiOperation({
    summary: 'Rotate the secret of an endpoint',
    description:
      'The new secret signs at once, and the one before beside it until the overlap ends. Several rotations in a row are safe: each older secret keeps its end. A 409 `too_many_secrets` where five are live.',
  })
  @ApiParam(idParam)
  @ApiBody({ schema: referTo(rotationDto), required: false })
  @ApiResponse({ status: 201, description: 'Rotated.', standardSchema: rotatedSecretDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  rotate(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: rotationBody }) body: RotationBody,
  ) {
    return this.secrets.rotate(tenantOf(access, query.tenant_id), id, body);
  }

  @Delete(':secret_id')
  @HttpCode(204)
  @ApiOperation({
    summary: 'End an old secret now',
    description: 'Attempts that begin from then on are not signed with it. A 409 `secret_in_use` for the current one.',
  })
  @ApiParam(idParam)
  @ApiParam(secretParam)
  @ApiResponse({ status: 204, description: 'Ended.' })
  @ApiProblems(403, 404, 409, 422)
  end(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Param('secret_id', secretId) secret: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.secrets.end(tenantOf(access, query.tenant_id), id, secret);
  }
}
