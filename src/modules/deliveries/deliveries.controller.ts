import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { actionBody, type ActionBody, actionDto, deliveryDto, redeliveryDto } from '../../http/delivery.dto.js';
import { IdPipe } from '../../http/id.pipe.js';
import { referTo } from '../../http/openapi-schemas.js';
import { tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import {
  attemptListDto,
  attemptQuery,
  type AttemptQuery,
  deliveryListDto,
  deliveryQuery,
  type DeliveryQuery,
  waitQuery,
  type WaitQuery,
} from './deliveries.dto.js';
import { DeliveriesService } from './deliveries.service.js';
import { timelineDto } from './timeline.dto.js';

const idParam = { name: 'id', description: 'The delivery, `whd_…`.', example: 'whd_01KC0000000000000000000002' };
const deliveryId = new IdPipe('delivery');

@ApiTags('deliveries')
@ApiBearerAuth()
@Controller('v1/webhook-deliveries')
export class DeliveriesController {
  constructor(private readonly deliveries: DeliveriesService) {}

  @Get()
  @ApiOperation({
    summary: 'List deliveries',
    description:
      'Newest first. Filters are combined with AND. Cursors belong to their filters: with others they are refused.',
  })
  @ApiResponse({ status: 200, description: 'A page of deliveries.', standardSchema: deliveryListDto })
  @ApiProblems(403, 422)
  list(@CurrentAccess() access: Access, @Query({ schema: deliveryQuery }) query: DeliveryQuery) {
    return this.deliveries.list(tenantOf(access, query.tenant_id), query);
  }

  @Get(':id')
  @ApiOperation({
    summary: 'Get a delivery',
    description: 'With `wait`, the answer comes when the delivery is closed, or after that time.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The delivery.', standardSchema: deliveryDto })
  @ApiProblems(403, 404, 422)
  get(
    @CurrentAccess() access: Access,
    @Param('id', deliveryId) id: string,
    @Query({ schema: waitQuery }) query: WaitQuery,
  ) {
    return this.deliveries.get(tenantOf(access, query.tenant_id), id, query);
  }

  @Get(':id/attempts')
  @ApiOperation({ summary: 'List the attempts of a delivery', description: 'Oldest first, over all rounds.' })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'A page of attempts.', standardSchema: attemptListDto })
  @ApiProblems(403, 404, 422)
  attempts(
    @CurrentAccess() access: Access,
    @Param('id', deliveryId) id: string,
    @Query({ schema: attemptQuery }) query: AttemptQuery,
  ) {
    return this.deliveries.attempts(tenantOf(access, query.tenant_id), id, query);
  }

  @Get(':id/timeline')
  @ApiOperation({
    summary: 'Get the timeline of a delivery',
    description:
      'What happened to it, in order, as far as it is known; and when its next attempt is due, and why then.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The timeline.', standardSchema: timelineDto })
  @ApiProblems(403, 404, 422)
  timeline(
    @CurrentAccess() access: Access,
    @Param('id', deliveryId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.deliveries.timeline(tenantOf(access, query.tenant_id), id);
  }

  @Post(':id/redeliver')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Deliver again',
    description:
      'A closed delivery opens its next round with a full schedule; a waiting one is attempted at once. While an attempt is due or in flight, nothing changes and the answer says `already_in_progress`. A 409 `endpoint_unavailable` where the endpoint is deleted or not active.',
  })
  @ApiParam(idParam)
  @ApiBody({ schema: referTo(actionDto), required: false })
  @ApiResponse({ status: 202, description: 'Accepted, and kept.', standardSchema: redeliveryDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  redeliver(
    @CurrentAccess() access: Access,
    @Param('id', deliveryId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: actionBody }) body: ActionBody,
  ) {
    return this.deliveries.redeliver(access, tenantOf(access, query.tenant_id), id, body);
  }

  @Post(':id/cancel')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Cancel a delivery',
    description:
      'Gives a waiting delivery up. A request in flight finishes, and may still make the delivery `succeeded`. A 409 `delivery_closed` where nothing waits.',
  })
  @ApiParam(idParam)
  @ApiBody({ schema: referTo(actionDto), required: false })
  @ApiResponse({ status: 202, description: 'Cancelled.', standardSchema: deliveryDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  cancel(
    @CurrentAccess() access: Access,
    @Param('id', deliveryId) id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: actionBody }) body: ActionBody,
  ) {
    return this.deliveries.cancel(access, tenantOf(access, query.tenant_id), id, body);
  }
}
