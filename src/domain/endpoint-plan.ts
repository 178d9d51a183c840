import type { EndpointStatus } from './closed-lists.js';

/** What can become due for an endpoint, in the order in which to do it. */
export const healthTasks = [
  'expire',
  'expire_verification',
  'disable',
  'warn',
  'tell_disabled',
  'tell_refused',
  'tell_recovered',
  'tell_expiring',
  'tell_certificate_expiring',
  'verify',
  'ping',
  'probe',
  'send_mail',
] as const;
export type HealthTask = (typeof healthTasks)[number];

/** An endpoint as its workflow sees it; times in milliseconds from now, by the database's clock; null: never. */
export interface EndpointFacts {
  readonly status: EndpointStatus;
  readonly statusReason: string | null;
  readonly verifyInMs: number | null;
  readonly verificationEndsInMs: number | null;
  readonly pingInMs: number | null;
  readonly probeInMs: number | null;
  readonly mailInMs: number | null;
  readonly expiresInMs: number | null;
  /** Until its client certificate ends. */
  readonly certificateExpiresInMs: number | null;
  /** For so long every attempt has failed, not counting what was before it was resumed; null while it succeeds. */
  readonly failingForMs: number | null;
  /** It refuses our credentials, which it had accepted before. */
  readonly refused: boolean;
  readonly told: ToldFacts;
}

/** What the owner knows already of what is the matter now. */
export interface ToldFacts {
  /** The longest failure that was told of this episode; 0: none. */
  readonly failingForMs: number;
  readonly refused: boolean;
  /** When the owner last heard of any refusal, in milliseconds ago; null: never. */
  readonly anyRefusalAgoMs: number | null;
  readonly disabled: boolean;
  readonly expiring: boolean;
  readonly certificateExpiring: boolean;
  /** The last bad news: `over` when the endpoint has succeeded since, and nobody was told of that yet. */
  readonly trouble: 'none' | 'open' | 'over';
}

/** When the owner hears of what, and when the endpoint is disabled. */
export interface HealthRules {
  readonly warnAfterMs: readonly number[];
  readonly disableAfterMs: number;
  /** Ahead of its expiry, and of its client certificate's. */
  readonly expiryNoticeMs: number;
}

export interface Deadline {
  readonly task: HealthTask;
  readonly inMs: number;
}

export interface EndpointPlan {
  /** Due now. */
  readonly tasks: readonly HealthTask[];
  readonly next: Deadline | null;
  /** All that is to come as things stand, soonest first. */
  readonly coming: readonly Deadline[];
}

/** A timer may fire a little early by the database's clock. */
const dueToleranceMs = 25;
/** A success that nobody told of is found after this long at most. */
const lookAgainMs = 3_600_000;
/** Who accepts and refuses by turns is no news each time. */
const refusalRestMs = 3_600_000;

/** What is not worth doing any more once the first of them is done. */
const madeNeedlessBy: Partial<Record<HealthTask, readonly HealthTask[]>> = {
  expire: [
    'expire_verification',
    'disable',
    'warn',
    'tell_refused',
    'tell_recovered',
    'tell_expiring',
    'tell_certificate_expiring',
    'verify',
    'ping',
  ],
  expire_verification: ['verify', 'tell_expiring'],
  disable: ['warn', 'tell_refused', 'ping'],
};

/** What an endpoint needs now, and what comes next. */
export function planEndpoint(facts: EndpointFacts, rules: HealthRules): EndpointPlan {
  const deadlines = deadlinesOf(facts, rules)
    .map(({ task, inMs }) => ({ task, inMs: Math.max(0, Math.ceil(inMs)) }))
    .sort((a, b) => a.inMs - b.inMs);
  const due = new Set(deadlines.filter(({ inMs }) => inMs <= dueToleranceMs).map(({ task }) => task));
  for (const task of healthTasks) {
    if (due.has(task)) for (const needless of madeNeedlessBy[task] ?? []) due.delete(needless);
  }
  const later = deadlines.filter(({ inMs }) => inMs > dueToleranceMs);
  return {
    tasks: healthTasks.filter((task) => due.has(task)),
    next: later[0] ?? null,
    // To look again is no news.
    coming: later.filter(({ task }) => task !== 'tell_recovered'),
  };
}

/** The longest wait that is over of those after which the owner is warned; null: none is. */
export function warningStage(failingForMs: number, { warnAfterMs }: HealthRules): number | null {
  const reached = warnAfterMs.filter((stage) => stage <= failingForMs + dueToleranceMs);
  return reached.length > 0 ? Math.max(...reached) : null;
}

function deadlinesOf(facts: EndpointFacts, rules: HealthRules): Deadline[] {
  const { status, told, failingForMs, expiresInMs } = facts;
  const deadlines: Deadline[] = [];
  const add = (task: HealthTask, inMs: number | null): void => {
    if (inMs !== null) deadlines.push({ task, inMs });
  };
  if (status === 'pending_verification') add('expire_verification', facts.verificationEndsInMs);
  if (status === 'pending_verification' || status === 'paused') add('verify', facts.verifyInMs);
  if (status === 'active') {
    add('ping', facts.pingInMs);
    if (failingForMs !== null) {
      for (const stage of rules.warnAfterMs) if (stage > told.failingForMs) add('warn', stage - failingForMs);
      add('disable', rules.disableAfterMs - failingForMs);
    }
    if (facts.refused && !told.refused)
      add('tell_refused', told.anyRefusalAgoMs === null ? 0 : refusalRestMs - told.anyRefusalAgoMs);
    if (failingForMs === null && !facts.refused && told.trouble !== 'none')
      add('tell_recovered', told.trouble === 'over' ? 0 : lookAgainMs);
  }
  if (status === 'disabled') {
    const toTell = facts.statusReason === 'gone' || facts.statusReason === 'failing';
    if (toTell && !told.disabled) add('tell_disabled', 0);
    if (facts.statusReason === 'failing') add('probe', facts.probeInMs);
  }
  if (expiresInMs !== null && status !== 'disabled' && status !== 'expired') {
    add('expire', expiresInMs);
    if (!told.expiring) add('tell_expiring', expiresInMs - rules.expiryNoticeMs);
  }
  // Who gets nothing misses no certificate; enabled or renewed, it is told then.
  if (
    facts.certificateExpiresInMs !== null &&
    status !== 'disabled' &&
    status !== 'expired' &&
    !told.certificateExpiring
  )
    add('tell_certificate_expiring', facts.certificateExpiresInMs - rules.expiryNoticeMs);
  add('send_mail', facts.mailInMs);
  return deadlines;
}
