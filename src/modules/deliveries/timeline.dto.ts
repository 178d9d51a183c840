import { z } from 'zod';
import { attemptErrorCodes, deliveryReasons } from '../../domain/closed-lists.js';
import { letterResolutions } from '../../domain/letters.js';
import { timestamp } from '../../http/text.dto.js';

export const timelineKinds = [
  'published',
  'held',
  'attempt',
  'wait',
  'redelivery',
  'succeeded',
  'dead_lettered',
  'cancelled',
  'letter_resolved',
] as const;

const timelineEntryDto = z
  .object({
    at: timestamp().describe('When it happened or began.'),
    kind: z
      .enum(timelineKinds)
      .describe(
        '`published`: accepted. `held`: its endpoint took nothing, or it waited for its turn. `attempt`. `wait`: until the next attempt. `redelivery`: the next round began. `succeeded`, `dead_lettered`, `cancelled`: the round ended. `letter_resolved`: what became of the dead letter.',
      ),
    round: z.int().min(1).describe('The round that it belongs to.'),
    at_latest: z
      .literal(true)
      .optional()
      .describe(
        'Set where `at` is not the time itself: it happened then at the latest. Only of a `redelivery` that is not kept any more.',
      ),
    until: timestamp().optional().describe('Of `wait` and `held`: its end, as far as it is known.'),
    reason: z.enum(deliveryReasons).optional().describe('Why, as far as it is known.'),
    number: z.int().min(1).optional().describe('Of an `attempt`: its number.'),
    duration_ms: z.int().min(0).optional().describe('Of an `attempt`: how long it took.'),
    status_code: z.int().nullable().optional().describe('Of an `attempt`: the HTTP status; null where none came.'),
    error_code: z
      .enum(attemptErrorCodes)
      .nullable()
      .optional()
      .describe('Of an `attempt`: what went wrong; null when it delivered.'),
    error_message: z.string().nullable().optional().describe('Of an `attempt`: the same in words.'),
    resolution: z.enum(letterResolutions).optional().describe('Of `letter_resolved`: how.'),
    by: z.string().nullable().optional().describe('Id of the API key that asked for it, where one did.'),
    note: z.string().nullable().optional().describe('What was written beside that request.'),
  })
  .meta({
    id: 'TimelineEntry',
    description: 'One thing that happened to a delivery; fields that do not belong to its kind are left out.',
  });
export type TimelineEntry = z.infer<typeof timelineEntryDto>;

export const timelineDto = z
  .object({
    data: z.array(timelineEntryDto).describe('What happened, in order.'),
    truncated: z
      .boolean()
      .describe('There is more: only the newest 250 attempts, 100 letters, and 50 holds and redeliveries are shown.'),
    next_attempt: z
      .object({
        at: timestamp().describe('When it is due; in the past where it is due or in flight.'),
        number: z.int().min(1).describe('Its number.'),
        reason: z.enum(deliveryReasons).describe('Why it is due then.'),
        because: z.string().describe('The same in words.'),
      })
      .nullable()
      .describe('Null when none is due.'),
  })
  .meta({ id: 'Timeline', description: 'What happened to a delivery, and what happens next.' });
export type Timeline = z.infer<typeof timelineDto>;
