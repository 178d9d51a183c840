import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { IdPipe } from '../../http/id.pipe.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { statsDto, type StatsQuery, statsQuery } from './stats.dto.js';
import { StatsService } from './stats.service.js';

const endpointId = new IdPipe('endpoint');

@ApiTags('stats')
@ApiBearerAuth()
@Controller('v1')
export class StatsController {
  constructor(private readonly stats: StatsService) {}

  @Get('stats')
  @ApiOperation({
    summary: 'How deliveries go',
    description:
      'Attempts, success rate and latency of all endpoints of the tenant, by minute, hour or day, and what waits now.',
  })
  @ApiResponse({ status: 200, description: 'The numbers.', standardSchema: statsDto })
  @ApiProblems(403, 422)
  ofTenant(@CurrentAccess() access: Access, @Query({ schema: statsQuery }) query: StatsQuery) {
    return this.stats.ofTenant(tenantOf(access, query.tenant_id), query);
  }

  @Get('webhooks/subscriptions/:id/stats')
  @ApiOperation({
    summary: 'How deliveries to an endpoint go',
    description: 'Its attempts, success rate and latency by minute, hour or day, and what waits for it now.',
  })
  @ApiParam({ name: 'id', description: 'The endpoint, `we_…`.', example: 'we_01KC0000000000000000000001' })
  @ApiResponse({ status: 200, description: 'The numbers.', standardSchema: statsDto })
  @ApiProblems(403, 404, 422)
  ofEndpoint(
    @CurrentAccess() access: Access,
    @Param('id', endpointId) id: string,
    @Query({ schema: statsQuery }) query: StatsQuery,
  ) {
    return this.stats.ofEndpoint(tenantOf(access, query.tenant_id), id, query);
  }
}
