import { z } from 'zod';
import type { AttemptStats, Stats } from '../../database/stats-store.js';
import { bucketStarts, type StatsBucket, statsBuckets } from '../../domain/stats-window.js';
import { toUtcMilliseconds } from '../../domain/date-time.js';
import { tenantParameter } from '../../http/page.dto.js';
import { timestamp } from '../../http/text.dto.js';

function timeParameter(name: string, meaning: string) {
  const rule = `${name} is an RFC 3339 date-time such as 2026-01-31T12:00:00Z`;
  return (
    z
      .string({ error: rule })
      // A plus sign that isn't percent-encoded arrives as a space.
      .transform((text) => toUtcMilliseconds(text.replace(/ (\d\d:\d\d)$/, '+$1')) ?? '')
      .refine((text) => text !== '', rule)
      .transform((text) => new Date(text))
      .optional()
      .meta({ openapi: { type: 'string', format: 'date-time' }, description: meaning, example: '2026-01-31T12:00:00Z' })
  );
}

const sizes = Object.keys(statsBuckets) as [StatsBucket, ...StatsBucket[]];

export const statsQuery = z.strictObject({
  from: timeParameter('from', 'The window begins here. Default: so long before `to` as `by` allows, at most 24 hours.'),
  to: timeParameter('to', 'The window ends before this time. Default: now.'),
  by: z
    .enum(sizes, { error: `by is one of ${sizes.join(', ')}` })
    .default('hour')
    .meta({
      description: `Size of the buckets, in UTC. The window is at most ${sizes.map((by) => `${statsBuckets[by].longest} by ${by}`).join(', ')}.`,
    }),
  tenant_id: tenantParameter,
});
export type StatsQuery = z.infer<typeof statsQuery>;

const share = z.number().min(0).max(1).nullable();
const milliseconds = z.int().min(0).nullable();
const counts = z.record(z.string(), z.int());
const attemptFields = {
  attempts: z.int().min(0).describe('Attempts that began in it.'),
  delivered: z.int().min(0).describe('Those that the endpoint accepted.'),
  failed: z.int().min(0).describe('The others.'),
  success_rate: share.describe('`delivered / attempts`; null where there were none.'),
  latency_ms: z
    .object({
      p50: milliseconds.describe('Half of the attempts took no longer.'),
      p95: milliseconds.describe('95 % took no longer.'),
      p99: milliseconds.describe('99 % took no longer.'),
    })
    .describe('From dialling to the last byte of the answer.'),
  error_codes: counts.meta({
    description: 'Failed attempts by their `error_code`.',
    example: { http_status: 3, timeout_response: 1 },
  }),
  status_classes: counts.meta({
    description: 'Attempts that got an answer, by its class.',
    example: { '2xx': 40, '5xx': 3 },
  }),
};

export const statsDto = z
  .object({
    endpoint_id: z
      .string()
      .nullable()
      .meta({ description: 'The endpoint, `we_…`; null in total.', example: 'we_01KC0000000000000000000001' }),
    tenant_id: z.string().meta({ description: 'Whose they are.', example: 'default' }),
    from: timestamp().describe('The window begins here …'),
    to: timestamp().describe('… and ends before this time.'),
    by: z.enum(sizes).describe('Size of the buckets.'),
    total: z
      .object(attemptFields)
      .meta({ id: 'AttemptStats', description: 'Attempts in some time.' })
      .describe('The whole window.'),
    data: z
      .array(
        z
          .object({ starts_at: timestamp().describe('Where the bucket begins, in UTC.'), ...attemptFields })
          .meta({ id: 'StatsBucket', description: 'Attempts in one minute, hour or day.' }),
      )
      .describe('Every bucket of the window, oldest first; those at its ends hold only what lies in the window.'),
    backlog: z
      .object({
        pending: z.int().min(0).describe('Deliveries without an attempt in their round.'),
        retrying: z.int().min(0).describe('Those that wait for another attempt.'),
        held: z.int().min(0).describe('Those that wait until their endpoint takes deliveries.'),
        oldest_at: timestamp().nullable().describe('When the oldest of them was made.'),
      })
      .meta({ id: 'Backlog', description: 'What waits.' })
      .describe('What waits now, whatever the window is.'),
  })
  .meta({ id: 'Stats', description: 'How deliveries go.' });

export interface ShownWindow {
  readonly tenantId: string;
  readonly endpointId: string | null;
  readonly from: Date;
  readonly to: Date;
  readonly by: StatsBucket;
}

export function toStats({ total, buckets, backlog }: Stats, window: ShownWindow): z.infer<typeof statsDto> {
  const { tenantId, endpointId, from, to, by } = window;
  const known = new Map(buckets.map((bucket) => [bucket.startsAt.getTime(), bucket]));
  return {
    endpoint_id: endpointId,
    tenant_id: tenantId,
    from: from.toISOString(),
    to: to.toISOString(),
    by,
    total: toAttemptFields(total),
    data: bucketStarts(from.getTime(), to.getTime(), by).map((startsAt) =>
      Object.assign(
        { starts_at: new Date(startsAt).toISOString() },
        toAttemptFields(known.get(startsAt) ?? noAttempts),
      ),
    ),
    backlog: {
      pending: backlog.pending,
      retrying: backlog.retrying,
      held: backlog.held,
      oldest_at: backlog.oldestAt?.toISOString() ?? null,
    },
  };
}

const noAttempts: AttemptStats = {
  attempts: 0,
  delivered: 0,
  p50Ms: null,
  p95Ms: null,
  p99Ms: null,
  errors: {},
  answers: {},
};

function toAttemptFields({ attempts, delivered, p50Ms, p95Ms, p99Ms, errors, answers }: AttemptStats) {
  return {
    attempts,
    delivered,
    failed: attempts - delivered,
    success_rate: attempts === 0 ? null : Math.round((delivered / attempts) * 10_000) / 10_000,
    latency_ms: { p50: p50Ms, p95: p95Ms, p99: p99Ms },
    error_codes: errors,
    status_classes: answers,
  };
}
