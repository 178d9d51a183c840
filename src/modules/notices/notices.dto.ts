import { z } from 'zod';
import type { NoticeRow } from '../../database/notice-store.js';
import { mailStatuses, noticeTypes } from '../../domain/closed-lists.js';
import { listOf, pageQuery } from '../../http/page.dto.js';
import { timestamp } from '../../http/text.dto.js';

export const noticeDto = z
  .object({
    id: z.string().meta({ description: '`ntc_…`', example: 'ntc_01KC0000000000000000000004' }),
    type: z.enum(noticeTypes).meta({
      description: 'What it tells of; also the type of the operational event that goes with it.',
      example: 'endpoint.failing',
    }),
    endpoint_id: z
      .string()
      .meta({ description: 'The endpoint that it is about, `we_…`.', example: 'we_01KC0000000000000000000001' }),
    data: z.record(z.string(), z.unknown()).meta({
      description: 'What is known of it; the operational event carries the same.',
      example: { host: 'hooks.example.com', since: '2026-01-31T12:00:00.000Z', failing_for_ms: 86_400_000 },
    }),
    created_at: timestamp().describe('When it was made.'),
    mail: z
      .object({
        status: z
          .enum(mailStatuses)
          .describe(
            '`none`: no mail goes out, and `error` says why. `pending`: it is to be sent, or tried again. `sent`. `failed`: given up after three days.',
          ),
        to: z
          .string()
          .nullable()
          .describe('The endpoint’s `owner_email` when the notice was made; null where there was none.'),
        attempts: z.int().min(0).describe('Tries so far.'),
        next_attempt_at: timestamp().nullable().describe('When it is tried next; null when it isn’t.'),
        sent_at: timestamp().nullable().describe('When the mail server took it.'),
        error: z.string().nullable().describe('What was wrong with the last try, or why there is no mail.'),
      })
      .describe('The mail to the endpoint’s owner.'),
  })
  .meta({ id: 'Notice', description: 'What an endpoint’s owner is told.' });

export const noticeListDto = listOf(noticeDto).meta({ id: 'NoticeList', description: 'A page of notices.' });

export const noticeQuery = z.strictObject({
  ...pageQuery,
  endpoint_id: z
    .string({ error: 'endpoint_id must be given once only' })
    .regex(/^[A-Za-z0-9_]{1,64}$/, 'endpoint_id is the id of an endpoint, we_…')
    .optional()
    .meta({ description: 'Only notices about this endpoint.', example: 'we_01KC0000000000000000000001' }),
  type: z
    .enum(noticeTypes, { error: `type is one of ${noticeTypes.join(', ')}` })
    .optional()
    .meta({ description: 'Only notices of this type.', example: 'endpoint.disabled' }),
});
export type NoticeQuery = z.infer<typeof noticeQuery>;

export function toNotice(row: NoticeRow): z.infer<typeof noticeDto> {
  return {
    id: row.id,
    type: row.type,
    endpoint_id: row.endpoint_id,
    data: JSON.parse(row.data) as Record<string, unknown>,
    created_at: row.created_at.toISOString(),
    mail: {
      status: row.mail_status,
      to: row.mail_to,
      attempts: row.mail_attempts,
      next_attempt_at: row.mail_next_at?.toISOString() ?? null,
      sent_at: row.mail_sent_at?.toISOString() ?? null,
      error: row.mail_error,
    },
  };
}
