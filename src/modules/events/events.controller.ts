import { Body, Controller, Get, Headers, HttpCode, Param, Post, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiHeader, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { idempotencyHeader, replayedHeader } from '../../http/idempotency.js';
import { referTo } from '../../http/openapi-schemas.js';
import { noQuery, tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import {
  batchAnswerDto,
  dryRunDto,
  eventDto,
  newEventBatchDto,
  newEventDto,
  publishQuery,
  type PublishQuery,
} from './events.dto.js';
import { eventFeedDto, type EventFeedQuery, eventFeedQuery, eventStateDto } from './event-feed.dto.js';
import { EventFeedService } from './event-feed.service.js';
import { EventsService, type FixedAnswer } from './events.service.js';

@ApiTags('events')
@ApiBearerAuth()
@Controller('v1/events')
export class EventsController {
  constructor(
    private readonly events: EventsService,
    private readonly feed: EventFeedService,
  ) {}

  @Post()
  @HttpCode(202)
  @ApiOperation({
    summary: 'Publish an event',
    description: 'The answer means: committed to Postgres, with one delivery per active endpoint that wants it.',
  })
  @ApiHeader(idempotencyHeader('bytes', 'other bytes'))
  @ApiBody({ schema: referTo(newEventDto), required: true })
  @ApiResponse({ status: 202, description: 'Committed.', headers: { ...replayedHeader }, standardSchema: eventDto })
  @ApiResponse({ status: 200, description: 'With `dry_run=true`.', standardSchema: dryRunDto })
  @ApiProblems(400, 403, 409, 413, 415, 422)
  async publish(
    @CurrentAccess() access: Access,
    @Body() body: Buffer | undefined,
    @Query({ schema: publishQuery }) query: PublishQuery,
    @Headers('idempotency-key') key: string | undefined,
    @Headers('traceparent') traceparent: string | undefined,
    @Res() reply: FastifyReply,
  ) {
    send(reply, await this.events.publish(access, body ?? nothing, query, key, traceparent));
  }

  @Post('batch')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Publish up to 1,000 events',
    description:
      'Each one is validated and answered on its own; the valid ones go in together, by one transaction. A batch that is refused as a whole (malformed, too large) stores nothing.',
  })
  @ApiHeader(idempotencyHeader('bytes', 'other bytes'))
  @ApiBody({ schema: referTo(newEventBatchDto), required: true })
  @ApiResponse({
    status: 202,
    description: 'What became of each event; those with status 202 are committed.',
    headers: { ...replayedHeader },
    standardSchema: batchAnswerDto,
  })
  @ApiProblems(400, 409, 413, 415, 422)
  async publishBatch(
    @CurrentAccess() access: Access,
    @Body() body: Buffer | undefined,
    @Query({ schema: noQuery }) _query: object,
    @Headers('idempotency-key') key: string | undefined,
    @Headers('traceparent') traceparent: string | undefined,
    @Res() reply: FastifyReply,
  ) {
    send(reply, await this.events.publishBatch(access, body ?? nothing, key, traceparent));
  }

  @Get()
  @ApiOperation({
    summary: 'Follow the events',
    description:
      'Oldest first, in an order in which nobody who follows `next_cursor` ever misses an event, even one whose transaction commits late. Unlike other lists this one has no end: `next_cursor` is given whenever anything was looked at, also where no row was chosen. Keep the last one that you got, and ask with it again. With `endpoint_id`, each event comes with what became of it for that endpoint.',
  })
  @ApiResponse({ status: 200, description: 'A page of events.', standardSchema: eventFeedDto })
  @ApiProblems(403, 404, 422)
  list(@CurrentAccess() access: Access, @Query({ schema: eventFeedQuery }) query: EventFeedQuery) {
    return this.feed.page(tenantOf(access, query.tenant_id), query);
  }

  @Get(':id')
  @ApiOperation({
    summary: 'Get an event',
    description: 'With its data, byte for byte as published, until that is purged; and with what became of it.',
  })
  @ApiParam({
    name: 'id',
    description: 'The event: your own id, or `evt_…`.',
    example: 'evt_01KC0000000000000000000000',
  })
  @ApiResponse({ status: 200, description: 'The event.', standardSchema: eventStateDto })
  @ApiProblems(403, 404, 422)
  async get(
    @CurrentAccess() access: Access,
    @Param('id') id: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Res() reply: FastifyReply,
  ) {
    const text = await this.feed.get(tenantOf(access, query.tenant_id), id);
    void reply.status(200).type('application/json; charset=utf-8').send(text);
  }
}

/** A request without a body and without a Content-Type reaches no parser. */
const nothing = Buffer.alloc(0);

function send(reply: FastifyReply, { statusCode, answer, replayed }: FixedAnswer): void {
  if (replayed) void reply.header('Idempotency-Replayed', 'true');
  void reply.status(statusCode).type('application/json; charset=utf-8').send(answer);
}
