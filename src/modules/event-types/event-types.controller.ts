import { Body, Controller, Delete, Get, HttpCode, Param, Post, Put, Query, Res } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import {
  type CatalogueFile,
  catalogueFileDto,
  eventTypeDto,
  eventTypeListDto,
  eventTypeQuery,
  type EventTypeQuery,
  importQuery,
  type ImportQuery,
  importReportDto,
  newEventTypeDto,
  type NewEventTypeBody,
} from './event-types.dto.js';
import { EventTypesService } from './event-types.service.js';

const nameParam = { name: 'name', description: 'The event type.', example: 'invoice.paid' } as const;

@ApiTags('event types')
@ApiBearerAuth()
@Controller('v1/event-types')
export class EventTypesController {
  constructor(private readonly types: EventTypesService) {}

  @Get()
  @ApiOperation({ summary: 'List event types', description: 'Those that were registered last first, without schemas.' })
  @ApiResponse({ status: 200, description: 'A page of event types.', standardSchema: eventTypeListDto })
  @ApiProblems(403, 422)
  list(@CurrentAccess() access: Access, @Query({ schema: eventTypeQuery }) query: EventTypeQuery) {
    return this.types.list(tenantOf(access, query.tenant_id), query);
  }

  @Get('export')
  @ApiOperation({
    summary: 'Export the catalogue',
    description: 'All event types as one file, for a repository: the same catalogue gives the same bytes.',
  })
  @ApiResponse({ status: 200, description: 'The file.', standardSchema: catalogueFileDto })
  @ApiProblems(403, 422)
  async export(
    @CurrentAccess() access: Access,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Res() reply: FastifyReply,
  ) {
    const text = await this.types.export(tenantOf(access, query.tenant_id));
    void reply.status(200).type('application/json; charset=utf-8').send(text);
  }

  @Post('import')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Import a catalogue',
    description:
      'Brings the event types to what the file says, all of them or none. Repeating it changes nothing. `dry_run=true` says what would change; `prune=true` removes what is not in the file.',
  })
  @ApiResponse({ status: 200, description: 'What changed, or would change.', standardSchema: importReportDto })
  @ApiProblems(400, 403, 413, 415, 422)
  import(
    @CurrentAccess() access: Access,
    @Query({ schema: importQuery }) query: ImportQuery,
    @Body({ schema: catalogueFileDto }) body: CatalogueFile,
  ) {
    return this.types.import(tenantOf(access, query.tenant_id), body, query);
  }

  @Get(':name')
  @ApiOperation({
    summary: 'Get an event type',
    description: 'With its versions, their schemas, examples and conversions.',
  })
  @ApiParam(nameParam)
  @ApiResponse({ status: 200, description: 'The event type.', standardSchema: eventTypeDto })
  @ApiProblems(403, 404, 422)
  get(
    @CurrentAccess() access: Access,
    @Param('name') name: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.types.get(tenantOf(access, query.tenant_id), name);
  }

  @Put(':name')
  @ApiOperation({
    summary: 'Register an event type',
    description:
      'Registers it, or puts this definition in the place of the one that is there, as a whole. Schemas have to compile, examples have to fit them, and conversions have to make of every example what fits the older schema.',
  })
  @ApiParam(nameParam)
  @ApiResponse({ status: 200, description: 'Changed, or as it was.', standardSchema: eventTypeDto })
  @ApiResponse({ status: 201, description: 'Registered.', standardSchema: eventTypeDto })
  @ApiProblems(400, 403, 413, 415, 422)
  async put(
    @CurrentAccess() access: Access,
    @Param('name') name: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: newEventTypeDto }) body: NewEventTypeBody,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const { created, answer } = await this.types.put(tenantOf(access, query.tenant_id), name, body);
    void reply.status(created ? 201 : 200);
    return answer;
  }

  @Delete(':name')
  @HttpCode(204)
  @ApiOperation({
    summary: 'Remove an event type',
    description:
      'From then on its events are delivered as published: nothing is cut out, converted or checked any more.',
  })
  @ApiParam(nameParam)
  @ApiResponse({ status: 204, description: 'Removed.' })
  @ApiProblems(403, 404, 422)
  remove(
    @CurrentAccess() access: Access,
    @Param('name') name: string,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.types.remove(tenantOf(access, query.tenant_id), name);
  }
}
