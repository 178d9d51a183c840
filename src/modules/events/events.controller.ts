import { Body, Controller, Headers, HttpCode, Post, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiHeader, ApiOperation, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { type Access, CurrentAccess } from '../../http/access/access.js';
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
import { bodySchema } from '../../http/body-schema.js';
import { EventsService, type FixedAnswer } from './events.service.js';

const idempotencyHeader = {
  name: 'Idempotency-Key',
  required: false,
  description:
    '1 – 255 printable ASCII characters, kept for 24 h per tenant. The same key with the same bytes gets the first answer again, with `Idempotency-Replayed: true`.',
};

@ApiTags('events')
@ApiBearerAuth()
@Controller('v1/events')
export class EventsController {
  constructor(private readonly events: EventsService) {}

  @Post()
  @HttpCode(202)
  @ApiOperation({
    summary: 'Publish an event',
    description: 'The answer means: committed to Postgres, with one delivery per endpoint that wants it.',
  })
  @ApiHeader(idempotencyHeader)
  @ApiBody({ schema: bodySchema(newEventDto) })
  @ApiResponse({ status: 202, standardSchema: eventDto })
  @ApiResponse({ status: 200, description: 'With `dry_run=true`.', standardSchema: dryRunDto })
  @ApiProblems(400, 401, 403, 409, 413, 415, 422, 503)
  async publish(
    @CurrentAccess() access: Access,
    @Body() body: Buffer,
    @Query({ schema: publishQuery }) query: PublishQuery,
    @Headers('idempotency-key') key: string | undefined,
    @Res() reply: FastifyReply,
  ) {
    send(reply, await this.events.publish(access, body, query, key));
  }

  @Post('batch')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Publish up to 1,000 events',
    description: 'Each one is validated and answered on its own; the valid ones go in together.',
  })
  @ApiHeader(idempotencyHeader)
  @ApiBody({ schema: bodySchema(newEventBatchDto) })
  @ApiResponse({ status: 202, standardSchema: batchAnswerDto })
  @ApiProblems(400, 401, 409, 413, 415, 422, 503)
  async publishBatch(
    @CurrentAccess() access: Access,
    @Body() body: Buffer,
    @Headers('idempotency-key') key: string | undefined,
    @Res() reply: FastifyReply,
  ) {
    send(reply, await this.events.publishBatch(access, body, key));
  }
}

function send(reply: FastifyReply, { statusCode, answer, replayed }: FixedAnswer): void {
  if (replayed) void reply.header('Idempotency-Replayed', 'true');
  void reply.status(statusCode).type('application/json; charset=utf-8').send(answer);
}
