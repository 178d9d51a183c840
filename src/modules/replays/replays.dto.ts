import { z } from 'zod';
import type { ReplayOutcomes, ReplayRow } from '../../database/replay-store.js';
import { terminalStatuses } from '../../domain/closed-lists.js';
import { isDeliveryId, tenantIdPattern } from '../../domain/ids.js';
import { toUtcMilliseconds } from '../../domain/date-time.js';
import { parseLetterId } from '../../domain/letters.js';
import { replayKinds, replayOrders, replayStatuses, skipNotes } from '../../domain/replays.js';
import { idFilters } from '../../http/filter.dto.js';
import { listOf, pageQuery } from '../../http/page.dto.js';
import { freeText, timestamp } from '../../http/text.dto.js';
import type { WorkflowLinks } from '../../http/workflow-links.js';
import { replayWorkflowId } from '../../../workflows/contracts/names.js';

export const maxIds = 1_000;
const maxRate = 1_000;
const maxReasonLength = 500;

const time = (name: string) => {
  const rule = `${name} is a time in RFC 3339, with an offset, such as 2026-01-31T12:00:00Z`;
  return z
    .string({ error: rule })
    .transform((text, context) => {
      const utc = toUtcMilliseconds(text);
      if (utc !== null) return new Date(utc);
      context.addIssue({ code: 'custom', message: rule });
      return z.NEVER;
    })
    .meta({ openapi: { type: 'string', format: 'date-time' }, example: '2026-01-31T12:00:00.000Z' });
};

/** Conditions on deliveries and on letters alike. */
const conditions = (what: string) => ({
  ...idFilters(what),
  http_status: z
    .int({ error: 'http_status is an HTTP status from 100 to 599, such as 503' })
    .min(100, 'http_status is an HTTP status from 100 to 599, such as 503')
    .max(599, 'http_status is an HTTP status from 100 to 599, such as 503')
    .optional()
    .meta({ description: `Only ${what} whose last answer had this HTTP status.`, example: 503 }),
  created_after: time('created_after').optional().describe(`Only ${what} from this time on: RFC 3339.`),
  created_before: time('created_before').optional().describe(`Only ${what} before this time: RFC 3339.`),
});

const isNotEmpty = (filter: object): boolean => Object.values(filter).some((value) => value !== undefined);
const filterRule = { message: 'filter needs at least one condition, such as {"endpoint_id": "we_…"}' };

const deliveryFilterDto = z
  .strictObject({
    status: z
      .enum(terminalStatuses, {
        error: `status is one of ${terminalStatuses.join(', ')}: only what is closed is sent again`,
      })
      .optional()
      .meta({ description: 'Only deliveries with this status; by default `failed`.', example: 'failed' }),
    ...conditions('deliveries'),
  })
  .refine(isNotEmpty, filterRule)
  .meta({ id: 'ReplayFilter', description: 'Closed deliveries, by conditions that are combined with AND.' });

const letterFilterDto = z
  .strictObject(conditions('letters'))
  .refine(isNotEmpty, filterRule)
  .meta({ id: 'LetterReplayFilter', description: 'Open dead letters, by conditions that are combined with AND.' });

const rate = z
  .int({ error: `rate_per_second is a whole number from 1 to ${maxRate}` })
  .min(1, `rate_per_second is a whole number from 1 to ${maxRate}`)
  .max(maxRate, `rate_per_second is a whole number from 1 to ${maxRate}`)
  .nullish()
  .meta({
    description: `Deliveries started a second, 1 – ${maxRate}; by default POSTHORN_REPLAY_RATE (20).`,
    example: 50,
  });
const dryRun = z.boolean({ error: 'dry_run is true or false' }).nullish().meta({
  description: 'Only count: nothing is stored or sent.',
  example: false,
});
const reason = freeText('reason', maxReasonLength)
  .nullish()
  .meta({
    description: `Why, for whoever looks later: at most ${maxReasonLength} characters, kept with the replay and its deliveries.`,
    example: 'receiver is back',
  });
const settings = {
  dry_run: dryRun,
  rate_per_second: rate,
  order: z
    .enum(replayOrders, { error: 'order is oldest or newest' })
    .nullish()
    .meta({ description: 'Which ones go first; by default `oldest`.', example: 'oldest' }),
  reason,
  tenant_id: z
    .string({ error: 'tenant_id is 1 – 64 of the characters A-Z a-z 0-9 . _ -' })
    .regex(tenantIdPattern, 'tenant_id is 1 – 64 of the characters A-Z a-z 0-9 . _ -')
    .nullish()
    .meta({
      description: 'The tenant to act for, with a service key: 1 – 64 of `[A-Za-z0-9._-]`, by default `default`.',
      example: 'default',
    }),
};

const ids = (name: string, isId: (id: string) => boolean, example: string) => {
  const rule = `${name} is a list of 1 – ${maxIds} ids, such as ["${example}"]`;
  return z
    .array(
      z.string({ error: rule }).refine(isId, `${name} has an id that can't be one: they look like ${example}`),
      rule,
    )
    .min(1, rule)
    .max(maxIds, rule)
    .optional()
    .meta({ description: `1 – ${maxIds} ids.`, example: [example] });
};

/** Of an action that takes nothing beside its path. */
export const noBody = z
  .strictObject(
    {},
    { error: (issue) => (issue.code === 'invalid_type' ? 'Send no body, or an empty JSON object: {}' : undefined) },
  )
  .nullish();

const isObject = {
  error: (issue: { code?: string }) => (issue.code === 'invalid_type' ? 'Send a JSON object' : undefined),
};

export const newReplayDto = z
  .strictObject(
    {
      delivery_ids: ids('delivery_ids', isDeliveryId, 'whd_01KC0000000000000000000002'),
      filter: deliveryFilterDto.optional().describe('Instead of ids: which ones.'),
      ...settings,
    },
    isObject,
  )
  .refine(({ delivery_ids, filter }) => (delivery_ids === undefined) !== (filter === undefined), {
    message: 'Send either delivery_ids or filter',
  })
  .meta({ id: 'NewReplay', description: 'What is to be sent again: `delivery_ids` or `filter`.' });
export type NewReplayBody = z.infer<typeof newReplayDto>;

export const newLetterReplayDto = z
  .strictObject(
    {
      letter_ids: ids('letter_ids', (id) => parseLetterId(id) !== null, 'whd_01KC0000000000000000000002.1'),
      filter: letterFilterDto.optional().describe('Instead of ids: which ones.'),
      ...settings,
    },
    isObject,
  )
  .refine(({ letter_ids, filter }) => (letter_ids === undefined) !== (filter === undefined), {
    message: 'Send either letter_ids or filter',
  })
  .meta({ id: 'NewLetterReplay', description: 'Which dead letters are to be sent again: `letter_ids` or `filter`.' });
export type NewLetterReplayBody = z.infer<typeof newLetterReplayDto>;

export const recoveryDto = z
  .strictObject(
    {
      since: time('since').describe('What failed or was missed from then on: RFC 3339 with any offset.'),
      dry_run: dryRun,
      rate_per_second: rate,
      reason,
    },
    isObject,
  )
  .meta({ id: 'Recovery', description: 'From when on an endpoint is to get what it didn’t.' });
export type RecoveryBody = z.infer<typeof recoveryDto>;

export const replayDto = z
  .object({
    id: z.string().meta({ description: '`rpl_…`', example: 'rpl_01KC0000000000000000000005' }),
    status: z
      .enum(replayStatuses)
      .describe(
        '`running`. `paused`: nothing more is started. `completed`: all of the set was started or skipped; what was started may still be on its way. `cancelled`.',
      ),
    kind: z
      .enum(replayKinds)
      .describe('What the set was chosen by: `ids`, `filter`, `letters`, or `recover`: what one endpoint didn’t get.'),
    request: z.record(z.string(), z.unknown()).meta({
      description: 'What was asked for.',
      example: { filter: { endpoint_id: 'we_01KC0000000000000000000001' } },
    }),
    rate_per_second: z.int().describe('Deliveries started a second, at most.'),
    reason: z.string().nullable().describe('The reason that came with it, or null.'),
    requested_by: z.string().nullable().describe('Id of the API key that asked for it, `key_…`.'),
    progress: z
      .object({
        total: z.int().describe('How many the set has; it never changes.'),
        started: z.int().describe('Deliveries that were sent on their way.'),
        skipped: z.int().describe('Those that needed nothing, or could get nothing.'),
        waiting: z.int().describe('Those whose turn is still to come; of a cancelled replay those that were not sent.'),
      })
      .describe('How far it is.'),
    estimated_end_at: timestamp()
      .nullable()
      .describe('When the last one is started, at its rate; null unless it is running.'),
    workflow_id: z
      .string()
      .meta({ description: 'Id of its Temporal workflow.', example: 'replay/rpl_01KC0000000000000000000005' }),
    workflow_url: z.string().nullable().meta({
      description: 'Where the Temporal Web UI shows it; null where nobody told the UI’s address.',
      example: 'http://127.0.0.1:8434/namespaces/default/workflows/replay%2Frpl_01KC0000000000000000000005',
    }),
    created_at: timestamp().describe('When it was asked for, and its set was fixed.'),
    updated_at: timestamp().describe('When it last moved.'),
    finished_at: timestamp().nullable().describe('When it was completed or cancelled, or null.'),
  })
  .meta({ id: 'Replay', description: 'Many deliveries sent again, as one job over a fixed set.' });

export const replayDetailDto = replayDto
  .extend({
    outcomes: z
      .object({
        succeeded: z.int().describe('Started ones that were delivered.'),
        failed: z.int().describe('Started ones that were given up again.'),
        cancelled: z.int().describe('Started ones that somebody cancelled.'),
        in_progress: z.int().describe('Started ones that are on their way, or held for their turn.'),
        skipped: z.record(z.enum(skipNotes), z.int()).meta({
          openapi: { type: 'object', additionalProperties: { type: 'integer' } },
          description: `Skipped ones by why: ${skipNotes.map((note) => `\`${note}\``).join(', ')}.`,
          example: { succeeded_meanwhile: 3 },
        }),
      })
      .describe('What became of the set, as its deliveries are now.'),
  })
  .meta({ id: 'ReplayDetail', description: 'A replay with what became of its deliveries.' });

export const replayListDto = listOf(replayDto).meta({ id: 'ReplayList', description: 'A page of replays.' });

export const dryRunDto = z
  .object({
    dry_run: z.literal(true).meta({ openapi: { type: 'boolean' }, description: 'Nothing was stored.', example: true }),
    total: z.int().describe('So many would be taken.'),
    max_total: z.int().describe('One replay takes so many at most (POSTHORN_REPLAY_MAX_ITEMS).'),
  })
  .meta({ id: 'ReplayDryRun', description: 'What a replay would take.' });

export const replayQuery = z.strictObject({
  ...pageQuery,
  status: z
    .enum(replayStatuses, { error: `status is one of ${replayStatuses.join(', ')}` })
    .optional()
    .meta({ description: 'Only replays with this status.', example: 'running' }),
});
export type ReplayQuery = z.infer<typeof replayQuery>;

export function toReplay(row: ReplayRow, workflows: WorkflowLinks): z.infer<typeof replayDto> {
  const waiting = row.total - row.started - row.skipped;
  return {
    id: row.id,
    status: row.status,
    kind: row.kind,
    request: JSON.parse(row.request) as Record<string, unknown>,
    rate_per_second: row.rate_per_second,
    reason: row.request_reason,
    requested_by: row.requested_by,
    progress: { total: row.total, started: row.started, skipped: row.skipped, waiting },
    estimated_end_at:
      row.status === 'running' ? new Date(Date.now() + (waiting * 1_000) / row.rate_per_second).toISOString() : null,
    workflow_id: replayWorkflowId(row.id),
    workflow_url: workflows.urlOf(replayWorkflowId(row.id)),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    finished_at: row.finished_at?.toISOString() ?? null,
  };
}

export function toReplayDetail(
  row: ReplayRow,
  outcomes: ReplayOutcomes,
  workflows: WorkflowLinks,
): z.infer<typeof replayDetailDto> {
  const { inProgress, skipped, ...rest } = outcomes;
  return {
    ...toReplay(row, workflows),
    outcomes: { ...rest, in_progress: inProgress, skipped: skipped as Record<(typeof skipNotes)[number], number> },
  };
}
