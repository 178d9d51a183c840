/** As PurgeStep of the activities; in the order in which they are done. */
export const purgeSteps = [
  'idempotency_keys',
  'payloads',
  'attempts',
  'letters',
  'replays',
  'deliveries',
  'events',
  'notices',
] as const;
export type PurgeStepName = (typeof purgeSteps)[number];

export const purgeQueries = { state: 'state' } as const;

export interface PurgeState {
  /** Null before the first step and after the last one. */
  readonly step: PurgeStepName | null;
  /** Where the step goes on. */
  readonly after: string | null;
  /** Rows so far: of `payloads`, events that lost theirs. */
  readonly removed: Readonly<Record<PurgeStepName, number>>;
}

/** Nothing, where somebody starts it; its own state where it continues as new. */
export interface PurgeInput {
  readonly state?: PurgeState;
}
