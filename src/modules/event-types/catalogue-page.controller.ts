import { Controller, Get, Header, Param } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { defaultTenantId, tenantIdPattern } from '../../domain/ids.js';
import { Public } from '../../http/access/access.guard.js';
import { notFound } from '../../http/problems/problem.js';
import { EventTypesService } from './event-types.service.js';

const html = 'text/html; charset=utf-8';
/** Nothing is loaded and nothing runs, whatever stands in a description. */
const policy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The catalogue for whoever builds a receiver: readable by everybody, where the configuration says so. */
@ApiExcludeController()
@Public()
@Controller('catalogue')
export class CataloguePageController {
  constructor(private readonly types: EventTypesService) {}

  @Get()
  @Header('Content-Type', html)
  @Header('Content-Security-Policy', policy)
  @Header('X-Content-Type-Options', 'nosniff')
  ofDefault(): Promise<string> {
    return this.types.page(defaultTenantId);
  }

  @Get(':tenant')
  @Header('Content-Type', html)
  @Header('Content-Security-Policy', policy)
  @Header('X-Content-Type-Options', 'nosniff')
  ofTenant(@Param('tenant') tenantId: string): Promise<string> {
    if (!tenantIdPattern.test(tenantId)) throw notFound('catalogue', tenantId);
    return this.types.page(tenantId);
  }
}
