import { z } from 'zod';
import { maxLiveSecrets, type SecretRow } from '../../database/endpoint-secret-store.js';
import {
  examplePublicKey,
  exampleSecret,
  judgeSecret,
  secretTypes,
  signingKeyPrefix,
} from '../../domain/signing-secret.js';
import { readSigningKey } from '../../security/signing-key.js';
import { timestamp } from '../../http/text.dto.js';

const day = 24 * 60 * 60 * 1_000;
export const defaultOverlapMs = day;
const maxOverlapMs = 30 * day;
const overlapRule = `overlap_ms is a whole number of milliseconds from 0 to ${maxOverlapMs} (30 days), such as ${defaultOverlapMs}`;

const keyRule = `the key is ${signingKeyPrefix} and the base64 of 64 bytes: the seed, and the public key that belongs to it`;
/** A secret or key that is brought along. What is refused is never repeated. */
const rotatedSecret = z
  .string({ error: `secret is a text that begins with whsec_ or whsk_, such as ${exampleSecret}` })
  .superRefine((text, context) => {
    const rule = text.startsWith(signingKeyPrefix) ? (readSigningKey(text) ? null : keyRule) : ruleOf(text);
    if (rule !== null) context.addIssue({ code: 'custom', message: rule });
  })
  .optional()
  .meta({
    description:
      'A secret of your own: `whsec_` and the base64 of 32 – 64 bytes, or for Ed25519 `whsk_` and the base64 of 64 bytes, seed and public key. By default one is made.',
    example: exampleSecret,
  });

function ruleOf(text: string): string | null {
  const judged = judgeSecret(text);
  return judged.ok ? null : judged.rule;
}

export const rotationDto = z
  .strictObject(
    {
      secret: rotatedSecret,
      type: z
        .enum(secretTypes, { error: `type is one of ${secretTypes.join(', ')}` })
        .optional()
        .meta({
          description:
            '`hmac`: a secret that the consumer has too. `ed25519`: a key pair, of which it gets the public half. Default: the one by which the endpoint signs. The other one may be made before the endpoint’s `signature` changes to it.',
          example: 'hmac',
        }),
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
    type: z
      .enum(secretTypes)
      .describe('`hmac`: shared with the consumer. `ed25519`: the consumer has the public half.'),
    public_key: z
      .string()
      .nullable()
      .meta({ description: 'Of an Ed25519 key: `whpk_` and base64. Else null.', example: examplePublicKey }),
    created_at: timestamp().describe('Since when it signs.'),
    expires_at: timestamp().nullable().describe('When it ends. Null: it is the current one.'),
    current: z.boolean().describe('The newest one of its type: the others sign beside it until they end.'),
  })
  .meta({ id: 'Secret', description: 'What may be told of a signing secret: never its value.' });

export const secretListDto = z
  .object({
    data: z
      .array(secretDto)
      .describe(
        `Those that are live, newest first: at most ${maxLiveSecrets} of each type. Those sign whose type the endpoint’s \`signature\` needs.`,
      ),
  })
  .meta({ id: 'SecretList', description: 'The secrets of an endpoint.' });

export const rotatedSecretDto = secretDto
  .extend({
    secret: z.string().nullable().meta({
      description:
        'Signs every request from now on. Shown here and never again. Null for `ed25519`: a private key is never shown.',
      example: exampleSecret,
    }),
  })
  .meta({ id: 'RotatedSecret', description: 'The new secret.' });

export function toSecret(row: SecretRow): z.infer<typeof secretDto> {
  return {
    id: row.id,
    type: row.type,
    public_key: row.public_key,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
    current: row.expires_at === null,
  };
}
