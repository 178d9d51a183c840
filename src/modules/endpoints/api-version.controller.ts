import { Body, Controller, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { type VersionPreviewBody, versionPreviewAnswerDto, versionPreviewDto } from './api-version.dto.js';
import { ApiVersionService } from './api-version.service.js';
import { endpointId, idParam } from './endpoint-parameters.js';

@ApiTags('endpoints')
@ApiBearerAuth()
@Controller('v1/webhooks/subscriptions/:id/api-version')
export class ApiVersionController {
  constructor(private readonly versions: ApiVersionService) {}

  @Post('preview')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Try another version',
    description:
      'Says what pinning the endpoint to another version, or to none, would change: which types, from which version to which, and a sample before and after. Nothing is changed: that is `PATCH` with `api_version`.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'What would change.', standardSchema: versionPreviewAnswerDto })
  @ApiProblems(400, 403, 404, 413, 415, 422)
  preview(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: versionPreviewDto }) body: VersionPreviewBody,
  ) {
    return this.versions.preview(tenantOf(access, query.tenant_id), id, body.api_version);
  }
}
