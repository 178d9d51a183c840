import { z } from 'zod';
import { isPin } from '../../domain/event-catalogue.js';

export const pinRule = 'api_version is a date such as 2026-01-31, or newest for no pin, or null for the default';

export const versionPreviewDto = z
  .strictObject(
    {
      api_version: z.string({ error: pinRule }).refine(isPin, pinRule).meta({
        description: 'The version to try: a date, or `newest` for no pin.',
        example: '2026-01-31',
      }),
    },
    {
      error: (issue) =>
        issue.code === 'invalid_type' ? 'Send a JSON object such as {"api_version": "2026-01-31"}' : undefined,
    },
  )
  .meta({ id: 'NewVersionPreview', description: 'Another version for an endpoint, to be tried.' });
export type VersionPreviewBody = z.infer<typeof versionPreviewDto>;

const shown = z
  .object({
    data: z
      .any()
      .meta({ description: 'What `data` would be; null where it can’t be made.', example: { invoice_id: 'inv_1' } }),
    problem: z.string().nullable().describe('Why deliveries of this version would fail; null where they wouldn’t.'),
  })
  .meta({ id: 'PreviewedData', description: 'The sample’s data in one version.' });

export const versionPreviewAnswerDto = z
  .object({
    from: z.string().meta({ description: 'What it is pinned to now.', example: '2025-01-31' }),
    to: z.string().meta({ description: 'What was tried.', example: '2026-01-31' }),
    unchanged: z.array(z.string()).describe('Types that it subscribes to and gets in the same version as now.'),
    changes: z
      .array(
        z
          .object({
            type: z.string().meta({ description: 'The event type.', example: 'invoice.paid' }),
            from_version: z.string().meta({ description: 'The version that it gets now.', example: '2025-01-31' }),
            to_version: z.string().meta({ description: 'The version that it would get.', example: '2026-01-31' }),
            sample: z
              .enum(['example', 'event'])
              .nullable()
              .describe(
                'What was taken: an `example` of the newest version, or the newest `event` of the type. Null: there is neither, or more than 50 types change.',
              ),
            before: shown.nullable().describe('The sample as it is sent now; null without a sample.'),
            after: shown.nullable().describe('The sample as it would be sent; null without a sample.'),
          })
          .meta({ id: 'VersionChange', description: 'An event type that would come in another version.' }),
      )
      .describe('Types that it subscribes to and would get in another version.'),
  })
  .meta({ id: 'VersionPreview', description: 'What another version would change. Nothing was changed.' });
