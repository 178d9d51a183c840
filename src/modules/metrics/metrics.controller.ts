import { Controller, Get, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Public } from '../../http/access/access.guard.js';
import { MetricsPage } from '../../telemetry/metrics-page.js';

/** For Prometheus: no part of the API, and only there where it is switched on. */
@ApiExcludeController()
@Public()
@Controller()
export class MetricsController {
  constructor(private readonly page: MetricsPage) {}

  @Get('metrics')
  async metrics(@Res() reply: FastifyReply): Promise<void> {
    void reply.type(this.page.contentType).send(await this.page.text());
  }
}
