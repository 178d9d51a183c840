import { Controller, Get, Header, Param } from '@nestjs/common';
import { ApiOperation, ApiParam, ApiResponse, ApiTags } from '@nestjs/swagger';
import { Public } from '../../http/access/access.guard.js';
import { ApiProblems } from '../../http/problems/api-problems.js';
import { endpointId, idParam } from './endpoint-parameters.js';
import { EndpointSecretsService } from './endpoint-secrets.service.js';
import { webhookKeysDto } from './webhook-keys.dto.js';

/** Where receivers find the keys that verify what they get. Public keys are no secret, so no key is asked for. */
@ApiTags('endpoints')
@Public()
@Controller('.well-known/webhook-keys')
export class WebhookKeysController {
  constructor(private readonly secrets: EndpointSecretsService) {}

  @Get(':id')
  @Header('Cache-Control', 'public, max-age=60')
  @ApiOperation({
    summary: 'Get the public keys of an endpoint',
    description:
      'A JSON Web Key Set (RFC 7517, RFC 8037) of the Ed25519 keys that sign for the endpoint, newest first. Open to everybody who knows the endpoint’s id.',
  })
  @ApiParam(idParam)
  @ApiResponse({ status: 200, description: 'The keys.', standardSchema: webhookKeysDto })
  @ApiProblems(404)
  keys(@Param('id', endpointId) id: string) {
    return this.secrets.publicKeys(id);
  }
}
