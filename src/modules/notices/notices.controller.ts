import { Controller, Get, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { noticeListDto, noticeQuery, type NoticeQuery } from './notices.dto.js';
import { NoticesService } from './notices.service.js';

@ApiTags('notices')
@ApiBearerAuth()
@Controller('v1/notices')
export class NoticesController {
  constructor(private readonly notices: NoticesService) {}

  @Get()
  @ApiOperation({
    summary: 'List notices',
    description:
      'What owners of endpoints were told, newest first. Filters are combined with AND. The same goes out by mail, and as an event to endpoints that name its type.',
  })
  @ApiResponse({ status: 200, description: 'A page of notices.', standardSchema: noticeListDto })
  @ApiProblems(403, 422)
  list(@CurrentAccess() access: Access, @Query({ schema: noticeQuery }) query: NoticeQuery) {
    return this.notices.list(tenantOf(access, query.tenant_id), query);
  }
}
