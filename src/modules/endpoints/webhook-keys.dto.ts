import { z } from 'zod';
import type { PublicKeyRow } from '../../database/endpoint-secret-store.js';
import { examplePublicKey, publicKeyPrefix } from '../../domain/signing-secret.js';
import { timestamp } from '../../http/text.dto.js';

const webhookKeyDto = z
  .object({
    kty: z.literal('OKP').describe('As RFC 8037 has it.'),
    crv: z.literal('Ed25519').describe('As RFC 8037 has it.'),
    x: z.string().describe('The 32 bytes of the public key, base64url.'),
    alg: z.literal('EdDSA').describe('As RFC 8037 has it.'),
    use: z.literal('sig').describe('It verifies signatures.'),
    kid: z.string().meta({ description: '`sec_…`: the secret’s id.', example: 'sec_01KC0000000000000000000003' }),
    public_key: z
      .string()
      .meta({ description: 'The same as Standard Webhooks writes it: `whpk_` and base64.', example: examplePublicKey }),
    expires_at: timestamp().nullable().describe('When it ends. Null: it is the current one.'),
  })
  .meta({ id: 'WebhookKey', description: 'A public key, as a JSON Web Key.' });

export const webhookKeysDto = z
  .object({ keys: z.array(webhookKeyDto).describe('Newest first. A request is good when one of them verifies it.') })
  .meta({ id: 'WebhookKeys', description: 'The public keys of an endpoint.' });

export function toWebhookKey(row: PublicKeyRow): z.infer<typeof webhookKeyDto> {
  const bytes = Buffer.from(row.public_key.slice(publicKeyPrefix.length), 'base64');
  return {
    kty: 'OKP',
    crv: 'Ed25519',
    x: bytes.toString('base64url'),
    alg: 'EdDSA',
    use: 'sig',
    kid: row.id,
    public_key: row.public_key,
    expires_at: row.expires_at?.toISOString() ?? null,
  };
}
