/**
 * What a purge goes through, in this order: an attempt and a letter go before their delivery, a delivery before its event, an
 * event's payload before the event.
 */
export type PurgeStep =
  'idempotency_keys' | 'payloads' | 'attempts' | 'letters' | 'replays' | 'deliveries' | 'events' | 'notices';

export interface PurgeSomeInput {
  readonly step: PurgeStep;
  /** Where the last call stopped; null at the beginning. */
  readonly after: string | null;
}

export interface PurgeSomeResult {
  readonly removed: number;
  /** Where to go on; null when the step is done. */
  readonly after: string | null;
}

/** Ordinary activities on `posthorn-control`. */
export interface RetentionActivities {
  /** Some seconds' worth of batches of one step. Several at once, and twice the same, do no harm. */
  purgeSome(input: PurgeSomeInput): Promise<PurgeSomeResult>;
}
