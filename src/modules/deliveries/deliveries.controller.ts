import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, CurrentTenant } from '../../http/access/access.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import {
  actionBody,
  type ActionBody,
  attemptListDto,
  attemptQuery,
  type AttemptQuery,
  deliveryDto,
  deliveryListDto,
  deliveryQuery,
  type DeliveryQuery,
  redeliveryDto,
  waitQuery,
  type WaitQuery,
} from './deliveries.dto.js';
import { DeliveriesService } from './deliveries.service.js';

@ApiTags('deliveries')
@ApiBearerAuth()
@Controller('v1/webhook-deliveries')
export class DeliveriesController {
  constructor(private readonly deliveries: DeliveriesService) {}

  @Get()
  @ApiOperation({ summary: 'List deliveries, newest first', description: '`status=failed` is the dead-letter store.' })
  @ApiResponse({ status: 200, standardSchema: deliveryListDto })
  @ApiProblems(401, 422)
  list(@CurrentTenant() tenant: string, @Query({ schema: deliveryQuery }) query: DeliveryQuery) {
    return this.deliveries.list(tenant, query);
  }

  @Get(':id')
  @ApiOperation({
    summary: 'One delivery',
    description: 'With `wait`, the answer comes when the delivery is closed, or after that time.',
  })
  @ApiResponse({ status: 200, standardSchema: deliveryDto })
  @ApiProblems(401, 404, 422)
  get(@CurrentTenant() tenant: string, @Param('id') id: string, @Query({ schema: waitQuery }) query: WaitQuery) {
    return this.deliveries.get(tenant, id, query);
  }

  @Get(':id/attempts')
  @ApiOperation({ summary: 'The attempts of a delivery, in order' })
  @ApiResponse({ status: 200, standardSchema: attemptListDto })
  @ApiProblems(401, 404, 422)
  attempts(
    @CurrentTenant() tenant: string,
    @Param('id') id: string,
    @Query({ schema: attemptQuery }) query: AttemptQuery,
  ) {
    return this.deliveries.attempts(tenant, id, query);
  }

  @Post(':id/redeliver')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Deliver again',
    description: 'A closed delivery opens its next round with a full schedule; a waiting one is attempted at once.',
  })
  @ApiResponse({ status: 202, standardSchema: redeliveryDto })
  @ApiProblems(401, 404, 409, 422)
  redeliver(
    @CurrentAccess() access: Access,
    @CurrentTenant() tenant: string,
    @Param('id') id: string,
    @Body({ schema: actionBody }) body: ActionBody,
  ) {
    return this.deliveries.redeliver(access, tenant, id, body);
  }

  @Post(':id/cancel')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Give a waiting delivery up',
    description: 'A request in flight finishes, and may still make the delivery `succeeded`.',
  })
  @ApiResponse({ status: 202, standardSchema: deliveryDto })
  @ApiProblems(401, 404, 409, 422)
  cancel(
    @CurrentAccess() access: Access,
    @CurrentTenant() tenant: string,
    @Param('id') id: string,
    @Body({ schema: actionBody }) body: ActionBody,
  ) {
    return this.deliveries.cancel(access, tenant, id, body);
  }
}
