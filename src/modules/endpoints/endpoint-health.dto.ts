import { z } from 'zod';
import { countLimits, type HealthReport } from '../../database/endpoint-evidence.js';
import { attemptErrorCodes, endpointStatuses, mailStatuses, noticeTypes } from '../../domain/closed-lists.js';
import { healthTasks } from '../../domain/endpoint-plan.js';
import { timestamp } from '../../http/text.dto.js';

const failureDto = z
  .object({
    delivery_id: z.string().meta({ description: 'Whose attempt it was.', example: 'whd_01KC0000000000000000000002' }),
    at: timestamp().describe('When the request began.'),
    status_code: z.int().nullable().describe('HTTP status of the answer; null where none came.'),
    error_code: z.enum(attemptErrorCodes).nullable().describe('What went wrong.'),
    error_message: z.string().nullable().describe('The same in words.'),
  })
  .meta({ id: 'HealthFailure', description: 'An attempt that failed.' });

const evidenceDto = z
  .object({
    first_failure_at: timestamp().nullable().describe('The first failure after the last success; null: none.'),
    attempts: z
      .int()
      .describe(
        `Attempts since then, among the newest ${countLimits.deliveries} deliveries of each status. 0 while it doesn’t fail.`,
      ),
    failed_attempts: z.int().describe('Those of them that failed.'),
    last_failures: z
      .array(failureDto)
      .describe('The newest attempts that failed, newest first, at most 5, also from before the last success.'),
  })
  .meta({ id: 'HealthEvidence', description: 'What the state is based on.' });

const backlogDto = z
  .object({
    held: z
      .int()
      .describe(`Deliveries that are \`held\` until the endpoint takes them; counted to ${countLimits.backlog}.`),
    waiting: z
      .int()
      .describe(`Deliveries that are \`pending\` or \`retrying\`; each status is counted to ${countLimits.backlog}.`),
    oldest_at: timestamp().nullable().describe('When the event of the oldest of them was accepted; null: none waits.'),
  })
  .meta({ id: 'HealthBacklog', description: 'What waits for the endpoint.' });

const missedDto = z
  .object({
    since: timestamp().describe('Since when it gets nothing.'),
    events: z.int().describe(`Events accepted since then that it would have got; counted to ${countLimits.events}.`),
  })
  .meta({ id: 'HealthMissed', description: 'Events that made no delivery, since the endpoint took none.' });

const toldDto = z
  .object({
    id: z.string().meta({ description: '`ntc_…`', example: 'ntc_01KC0000000000000000000004' }),
    type: z.enum(noticeTypes).describe('What its owner was told.'),
    created_at: timestamp().describe('When.'),
    mail_status: z.enum(mailStatuses).describe('What came of the mail: see `GET /v1/notices`.'),
    mail_error: z.string().nullable().describe('What was wrong with the last try to send it, or why there is none.'),
  })
  .meta({ id: 'HealthNotice', description: 'A notice about the endpoint.' });

const comingDto = z
  .object({
    what: z
      .enum(healthTasks)
      .describe(
        '`expire`. `expire_verification`: disabled, where it isn’t verified by then. `disable`: where it goes on failing. `warn`: its owner is told that it fails. `tell_disabled`, `tell_refused`, `tell_recovered`, `tell_expiring`, `tell_certificate_expiring`: its owner is told. `verify`: asked again. `ping`: the periodic one. `probe`: asked whether it answers again. `send_mail`.',
      ),
    at: timestamp().describe('When, as things stand.'),
  })
  .meta({ id: 'HealthDeadline', description: 'Something that comes by itself.' });

const tokenDto = z
  .object({
    requests: z.int().describe('Requests for a token so far.'),
    last_at: timestamp().describe('When the last one was made.'),
    last_status_code: z.int().nullable().describe('HTTP status of its answer; null where none came.'),
    last_error: z.string().nullable().describe('Why it brought no token; null where it did.'),
    last_success_at: timestamp().nullable().describe('When one last brought a token; null: none yet.'),
  })
  .meta({
    id: 'HealthToken',
    description: 'Requests for OAuth 2.0 tokens, by which the endpoint’s requests are authorised.',
  });

const mailDto = z
  .object({
    owner_email: z.string().nullable().describe('Who gets mail; null: nobody.'),
    pending: z.int().describe('Mails about the endpoint that are to be sent, or tried again.'),
    failed: z.int().describe('Mails that were given up.'),
    last_error: z
      .string()
      .nullable()
      .describe('What was wrong with the newest mail that did not go out; null: nothing.'),
    next_at: timestamp().nullable().describe('When the next mail is tried; null: none waits.'),
  })
  .meta({ id: 'HealthMail', description: 'The mail to its owner.' });

export const healthDto = z
  .object({
    status: z.enum(endpointStatuses).describe('As in the endpoint.'),
    status_reason: z
      .string()
      .nullable()
      .describe('Why it is disabled: `failing`, `gone` or `verification_expired`. Null where there is nothing to say.'),
    status_changed_at: timestamp().describe('Since when it has this status.'),
    failing_since: timestamp()
      .nullable()
      .describe('The first failure of those that no success followed; null while the last attempt succeeded.'),
    refused_since: timestamp()
      .nullable()
      .describe('Since when it answers 401 or 403, after it had accepted our credentials; null: it doesn’t.'),
    last_success_at: timestamp().nullable().describe('The last success, to 10 s; null: none yet.'),
    pace: z
      .enum(['open', 'probing', 'rising'])
      .describe(
        'How fast it is sent to. `open`: as fast as its limits allow. `probing`: one request at a time, since it is down or was just resumed. `rising`: it answers again, and gets 1, 2, 4 … requests a second.',
      ),
    evidence: evidenceDto,
    backlog: backlogDto,
    missed: missedDto
      .nullable()
      .describe('Null while it takes events: only a disabled or expired endpoint misses any.'),
    notices: z.array(toldDto).describe('What its owner was told, newest first, at most 10.'),
    coming: z.array(comingDto).describe('What comes by itself, soonest first.'),
    token: tokenDto.nullable().describe('Null: no token was asked for.'),
    mail: mailDto,
  })
  .meta({ id: 'EndpointHealth', description: 'How an endpoint is: state, evidence, and what comes next.' });

export function toHealth(report: HealthReport): z.infer<typeof healthDto> {
  const { evidence, backlog, missed, token, mail } = report;
  return {
    status: report.status,
    status_reason: report.statusReason,
    status_changed_at: report.statusChangedAt.toISOString(),
    failing_since: iso(report.failingSince),
    refused_since: iso(report.refusedSince),
    last_success_at: iso(report.lastSuccessAt),
    pace: report.pace,
    evidence: {
      first_failure_at: iso(evidence.firstFailureAt),
      attempts: evidence.attempts,
      failed_attempts: evidence.failedAttempts,
      last_failures: evidence.lastFailures.map((failure) => ({
        delivery_id: failure.deliveryId,
        at: failure.at.toISOString(),
        status_code: failure.statusCode,
        error_code: failure.errorCode as z.infer<typeof failureDto>['error_code'],
        error_message: failure.errorMessage,
      })),
    },
    backlog: { held: backlog.held, waiting: backlog.waiting, oldest_at: iso(backlog.oldestAt) },
    missed: missed && { since: missed.since.toISOString(), events: missed.events },
    notices: report.notices.map((notice) => ({
      id: notice.id,
      type: notice.type,
      created_at: notice.createdAt.toISOString(),
      mail_status: notice.mailStatus,
      mail_error: notice.mailError,
    })),
    coming: report.coming.map(({ what, at }) => ({ what, at: at.toISOString() })),
    token: token && {
      requests: token.requests,
      last_at: token.lastAt.toISOString(),
      last_status_code: token.lastStatusCode,
      last_error: token.lastError,
      last_success_at: iso(token.lastSuccessAt),
    },
    mail: {
      owner_email: mail.ownerEmail,
      pending: mail.pending,
      failed: mail.failed,
      last_error: mail.lastError,
      next_at: iso(mail.nextAt),
    },
  };
}

const iso = (time: Date | null): string | null => time?.toISOString() ?? null;
