import { Controller, Get, Header, Headers, HttpCode, Param, Post } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { EndpointCaller } from '../../contact/endpoint-caller.js';
import { Public } from '../../http/access/access.guard.js';
import { Problem } from '../../http/problems/problem.js';
import { endpointId } from './endpoint-parameters.js';

/**
 * Where an endpoint agrees later to what it was asked in a handshake (CloudEvents, HTTP 1.1 Web Hooks, section 4.1): the address was
 * given to it as `WebHook-Request-Callback`. The token in it is the key, so no other is asked for.
 */
@ApiExcludeController()
@Public()
@Controller('v1/webhooks/subscriptions/:id/consent/:token')
export class ConsentController {
  constructor(private readonly caller: EndpointCaller) {}

  @Get()
  @Header('Content-Type', 'text/plain; charset=utf-8')
  byGet(
    @Param('id', endpointId) id: string,
    @Param('token') token: string,
    @Headers('webhook-allowed-rate') allowedRate: string | undefined,
  ): Promise<string> {
    return this.consent(id, token, allowedRate);
  }

  @Post()
  @HttpCode(200)
  @Header('Content-Type', 'text/plain; charset=utf-8')
  byPost(
    @Param('id', endpointId) id: string,
    @Param('token') token: string,
    @Headers('webhook-allowed-rate') allowedRate: string | undefined,
  ): Promise<string> {
    return this.consent(id, token, allowedRate);
  }

  private async consent(id: string, token: string, allowedRate: string | undefined): Promise<string> {
    const readable = /^[A-Za-z0-9_-]{1,100}$/.test(token);
    if (readable && (await this.caller.consent(id, token, allowedRate))) return 'ok';
    throw new Problem(404, 'not_found', 'Nobody was asked by this address, or it was answered before');
  }
}
