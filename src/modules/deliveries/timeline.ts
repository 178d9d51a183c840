import type {
  DeliveryHistory,
  HistoryAttempt,
  HistoryDelivery,
  HistoryLetter,
  PastEntry,
} from '../../database/delivery-history.js';
import type { DeliveryReason } from '../../domain/closed-lists.js';
import type { Timeline, TimelineEntry } from './timeline.dto.js';

/** A delivery's past as a story: what the rows tell, round by round, and no more than they do. */
export function toTimeline(history: DeliveryHistory): Timeline {
  const { delivery, truncated } = history;
  const entries = truncated ? [] : [published(delivery), ...heldAtFirst(history)];
  for (const round of roundsOf(history)) entries.push(...tellRound(history, round));
  entries.push(...history.letters.flatMap(resolved));
  // Stable: what has the same time stays in the order of the story.
  return {
    data: entries.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)),
    truncated,
    next_attempt: next(delivery),
  };
}

function published({ created_at: at, published_status: status, round, round_reason }: HistoryDelivery): TimelineEntry {
  const reason = round === 1 && round_reason !== null ? round_reason : 'published';
  return { at: at.toISOString(), kind: 'published', round: 1, ...(status === 'pending' ? { reason } : {}) };
}

type PastHold = Extract<PastEntry, { kind: 'held' }>;
type PastRequest = Extract<PastEntry, { kind: 'redelivery' }>;

const holdsOf = ({ past }: DeliveryHistory): PastHold[] => past.filter((entry) => entry.kind === 'held');
const requestOf = ({ past }: DeliveryHistory, round: number): PastRequest | undefined =>
  past.find((entry): entry is PastRequest => entry.kind === 'redelivery' && entry.round === round);

/** Of a hold that was not kept, such as one of long ago, only its bounds are known. */
function heldAtFirst(history: DeliveryHistory): TimelineEntry[] {
  const { delivery, attempts } = history;
  const [first] = attempts;
  if (delivery.published_status !== 'held' || !first || holdsOf(history).some(({ round }) => round === 1)) return [];
  return [{ at: delivery.created_at.toISOString(), kind: 'held', round: 1, until: first.started_at.toISOString() }];
}

function roundsOf({ delivery, attempts, letters, past }: DeliveryHistory): number[] {
  const rounds = [...attempts, ...letters, ...past, delivery].map(({ round }) => round);
  return [...new Set(rounds)].sort((a, b) => a - b);
}

function tellRound(history: DeliveryHistory, round: number): TimelineEntry[] {
  const { delivery, attempts, letters } = history;
  const own = attempts.filter((attempt) => attempt.round === round);
  const letter = letters.find((one) => one.round === round);
  const entries: TimelineEntry[] = [];
  const holds = holdsOf(history).filter((hold) => hold.round === round);
  if (round > 1) entries.push(redelivered(history, round));
  entries.push(...holds.map(held));
  own.forEach((attempt, index) => {
    entries.push(told(attempt));
    const later = own[index + 1];
    if (later) entries.push(waited(attempt, later.started_at, holds));
  });
  const delivered = own.find(({ outcome }) => outcome === 'delivered');
  if (delivered) entries.push({ at: endOf(delivered), kind: 'succeeded', round, reason: 'delivered' });
  else if (letter)
    entries.push({ at: letter.created_at.toISOString(), kind: 'dead_lettered', round, reason: letter.reason });
  if (round === delivery.round) entries.push(...standing(delivery, own.at(-1)));
  return entries;
}

function redelivered(history: DeliveryHistory, round: number): TimelineEntry {
  const request = requestOf(history, round);
  if (request) {
    const { at, reason, by, note } = request;
    return { at: iso(at), kind: 'redelivery', round, ...(reason ? { reason } : {}), by, note };
  }
  const { delivery, attempts, letters } = history;
  const ofRound = (row: { readonly round: number }): boolean => row.round === round;
  const at = attempts.find(ofRound)?.started_at ?? letters.find(ofRound)?.created_at ?? delivery.updated_at;
  const asked = letters.find((one) => one.round === round - 1);
  return { at: at.toISOString(), kind: 'redelivery', round, at_latest: true, ...requester(delivery, round, asked) };
}

function held({ at, until, round, reason }: PastHold): TimelineEntry {
  return { at: iso(at), kind: 'held', round, reason, until: iso(until) };
}

/** Who asked for a round; of the latest request the delivery itself knows it, of earlier ones the letter that was sent again. */
function requester(delivery: HistoryDelivery, round: number, asked: HistoryLetter | undefined) {
  if (asked?.resolution !== 'discarded' && asked?.resolved_by)
    return { by: asked.resolved_by, note: asked.resolved_reason };
  if (round !== delivery.round || delivery.reason === 'cancelled_by_request') return {};
  return { by: delivery.requested_by, note: delivery.request_reason };
}

function told(attempt: HistoryAttempt): TimelineEntry {
  const { number, round, duration_ms, status_code, error_code, error_message } = attempt;
  return {
    at: attempt.started_at.toISOString(),
    kind: 'attempt',
    round,
    number,
    duration_ms,
    status_code,
    error_code,
    error_message,
  };
}

/** Until the next attempt, or until it was held meanwhile. */
function waited(attempt: HistoryAttempt, nextAt: Date, holds: readonly PastHold[]): TimelineEntry {
  const at = endOf(attempt);
  const reason = attempt.asked_to_wait ? 'retry_after' : 'attempt_failed';
  const until = holds.map((hold) => iso(hold.at)).find((heldAt) => heldAt >= at && heldAt < nextAt.toISOString());
  return { at, kind: 'wait', round: attempt.round, until: until ?? nextAt.toISOString(), reason };
}

/** How the delivery stands in its current round, where no attempt or letter tells it. */
function standing(delivery: HistoryDelivery, last: HistoryAttempt | undefined): TimelineEntry[] {
  const { status, reason, round } = delivery;
  const at = delivery.updated_at.toISOString();
  switch (status) {
    case 'succeeded':
    case 'failed':
      return [];
    case 'cancelled': {
      const who = reason === 'cancelled_by_request' ? { by: delivery.requested_by, note: delivery.request_reason } : {};
      return [{ at, kind: 'cancelled', round, reason, ...who }];
    }
    case 'held':
      return [{ at: delivery.held_since?.toISOString() ?? at, kind: 'held', round, reason }];
    case 'pending':
    case 'retrying': {
      const until = delivery.next_attempt_at;
      if (until === null) return [];
      return [{ at: last ? endOf(last) : at, kind: 'wait', round, until: until.toISOString(), reason }];
    }
  }
}

function resolved(letter: HistoryLetter): TimelineEntry[] {
  const { resolution, resolved_at: at, round, resolved_by: by, resolved_reason: note } = letter;
  return resolution === null || at === null
    ? []
    : [{ at: at.toISOString(), kind: 'letter_resolved', round, resolution, by, note }];
}

function next(delivery: HistoryDelivery): Timeline['next_attempt'] {
  const { next_attempt_at: at, attempt_count: made, reason } = delivery;
  return at && { at: at.toISOString(), number: made + 1, reason, because: because(delivery, reason) };
}

function because({ attempt_count: made, last_error: error }: HistoryDelivery, reason: DeliveryReason): string {
  const failed = made > 0 ? `Attempt ${made} failed (${error ?? 'no reason is known'})` : '';
  const texts: Partial<Record<DeliveryReason, string>> = {
    published: 'The first attempt goes out at once',
    attempt_failed: `${failed}, and the schedule waits so long before the next one`,
    retry_after: `${failed ? `${failed}, and the` : 'The'} endpoint asked to wait until then`,
    rate_limited: 'That is its place under the endpoint’s rate limit',
    redelivery_requested: 'It was asked for: the attempt goes out at once',
    replayed: 'It was asked for: the attempt goes out at once',
  };
  return texts[reason] ?? 'It goes on as scheduled';
}

const iso = (time: string): string => new Date(time).toISOString();

function endOf({ started_at: startedAt, duration_ms: durationMs }: HistoryAttempt): string {
  return new Date(startedAt.getTime() + durationMs).toISOString();
}
