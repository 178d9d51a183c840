import { z } from 'zod';
import { optionalSettings } from './endpoint-settings.dto.js';

export const renewalDto = z
  .strictObject(
    {
      expires_at: optionalSettings.expires_at.meta({
        description:
          'When the endpoint expires from now on: in the future, within 10 years. Null: it doesn’t expire any more.',
        example: '2028-01-31T12:00:00.000Z',
      }),
    },
    {
      error: (issue) =>
        issue.code === 'invalid_type'
          ? 'Send a JSON object such as {"expires_at": "2028-01-31T12:00:00Z"}, or {"expires_at": null}'
          : undefined,
    },
  )
  .meta({ id: 'Renewal', description: 'How long the endpoint goes on.' });
export type RenewalBody = z.infer<typeof renewalDto>;
