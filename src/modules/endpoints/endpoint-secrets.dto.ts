import { z } from 'zod';
import { maxLiveSecrets, type SecretRow } from '../../database/endpoint-secret-store.js';
import { exampleSecret } from '../../domain/signing-secret.js';
import { timestamp } from '../../http/text.dto.js';
import { importedSecret } from './endpoint-settings.dto.js';

const day = 24 * 60 * 60 * 1_000;
export const defaultOverlapMs = day;
const maxOverlapMs = 30 * day;
const overlapRule = `overlap_ms is a whole number of milliseconds from 0 to ${maxOverlapMs} (30 days), such as ${defaultOverlapMs}`;

export const rotationDto = z
  .strictObject(
    {
      secret: importedSecret,
      overlap_ms: z
        .int({ error: overlapRule })
        .min(0, overlapRule)
        .max(maxOverlapMs, overlapRule)
        .optional()
        .meta({
          description: `Milliseconds for which the secret before still signs beside the new one, 0 – ${maxOverlapMs}; 0 ends it at once. Default: ${defaultOverlapMs} (24 hours).`,
          example: defaultOverlapMs,
        }),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? 'Send a JSON object, such as {}, or no body' : undefined) },
  )
  .meta({ id: 'Rotation', description: 'The next secret, and how long the one before goes on.' });
export const rotationBody = rotationDto.nullish();
export type RotationBody = z.infer<typeof rotationBody>;

export const secretDto = z
  .object({
    id: z.string().meta({ description: '`sec_…`', example: 'sec_01KC0000000000000000000003' }),
    created_at: timestamp().describe('Since when it signs.'),
    expires_at: timestamp().nullable().describe('When it ends. Null: it is the current one.'),
    current: z.boolean().describe('The newest one: the others sign beside it until they end.'),
  })
  .meta({ id: 'Secret', description: 'What may be told of a signing secret: never its value.' });

export const secretListDto = z
  .object({ data: z.array(secretDto).describe(`Those that sign now, newest first: at most ${maxLiveSecrets}.`) })
  .meta({ id: 'SecretList', description: 'The secrets of an endpoint.' });

export const rotatedSecretDto = secretDto
  .extend({
    secret: z.string().meta({
      description: 'Signs every request from now on. Shown here and never again.',
      example: exampleSecret,
    }),
  })
  .meta({ id: 'RotatedSecret', description: 'The new secret.' });

export function toSecret(row: SecretRow): z.infer<typeof secretDto> {
  return {
    id: row.id,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
    current: row.expires_at === null,
  };
}
