import { Body, Controller, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import { type Access, CurrentAccess, tenantOf } from '../../http/access/access.js';
import { actionBody, type ActionBody, actionDto, redeliveryDto } from '../../http/delivery.dto.js';
import { referTo } from '../../http/openapi-schemas.js';
import { tenantQuery, type TenantQuery } from '../../http/page.dto.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { letterDto, letterListDto, letterQuery, type LetterQuery, wholeLetterDto } from './dead-letters.dto.js';
import { DeadLettersService } from './dead-letters.service.js';
import { LetterIdPipe, type LetterKey } from './letter-id.pipe.js';

const idParam = {
  name: 'id',
  type: 'string',
  description: 'The letter: its delivery’s id, a dot, and the round.',
  example: 'whd_01KC0000000000000000000002.1',
} as const;
const letterId = new LetterIdPipe();

@ApiTags('dead letters')
@ApiBearerAuth()
@Controller('v1/dead-letters')
export class DeadLettersController {
  constructor(private readonly letters: DeadLettersService) {}

  @Get()
  @ApiOperation({
    summary: 'List dead letters',
    description:
      'Newest first. Filters are combined with AND. A delivery has one letter for every round that was given up, and of them one is open at most. Cursors belong to their filters: with others they are refused.',
  })
  @ApiResponse({ status: 200, description: 'A page of dead letters.', standardSchema: letterListDto })
  @ApiProblems(403, 422)
  list(@CurrentAccess() access: Access, @Query({ schema: letterQuery }) query: LetterQuery) {
    return this.letters.list(tenantOf(access, query.tenant_id), query);
  }

  @Get(':id')
  @ApiOperation({
    summary: 'Get a dead letter',
    description: 'With its event, the last answer, and its delivery as it is now.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The letter.', standardSchema: wholeLetterDto })
  @ApiProblems(403, 404, 422)
  get(
    @CurrentAccess() access: Access,
    @Param('id', letterId) id: LetterKey,
    @Query({ schema: tenantQuery }) query: TenantQuery,
  ) {
    return this.letters.get(tenantOf(access, query.tenant_id), id);
  }

  @Post(':id/replay')
  @HttpCode(202)
  @ApiOperation({
    summary: 'Replay a dead letter',
    description:
      'Delivers its delivery again, as redeliver does. The letter stays open until that succeeds (`replayed`), or fails again, which makes a newer letter. A 409 where the letter is resolved, or its endpoint deleted or not active.',
  })
  @ApiParam(idParam)
  @ApiBody({ schema: referTo(actionDto), required: false })
  @ApiResponse({ status: 202, description: 'Accepted, and kept.', standardSchema: redeliveryDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  replay(
    @CurrentAccess() access: Access,
    @Param('id', letterId) id: LetterKey,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: actionBody }) body: ActionBody,
  ) {
    return this.letters.replay(access, tenantOf(access, query.tenant_id), id, body);
  }

  @Post(':id/discard')
  @HttpCode(200)
  @ApiOperation({
    summary: 'Discard a dead letter',
    description:
      'Nobody needs it any more: the letter is `discarded`, with the key that decided so and the reason. Its delivery stays as it is. A 409 where the letter is resolved.',
  })
  @ApiParam(idParam)
  @ApiBody({ schema: referTo(actionDto), required: false })
  @ApiResponse({ status: 200, description: 'Discarded.', standardSchema: letterDto })
  @ApiProblems(400, 403, 404, 409, 413, 415, 422)
  discard(
    @CurrentAccess() access: Access,
    @Param('id', letterId) id: LetterKey,
    @Query({ schema: tenantQuery }) query: TenantQuery,
    @Body({ schema: actionBody }) body: ActionBody,
  ) {
    return this.letters.discard(access, tenantOf(access, query.tenant_id), id, body);
  }
}
