/** A replay: many deliveries sent again as one job over a fixed set. */
export const replayStatuses = ['running', 'paused', 'completed', 'cancelled'] as const;
export type ReplayStatus = (typeof replayStatuses)[number];

/** What its set was chosen by. */
export const replayKinds = ['ids', 'filter', 'letters', 'recover'] as const;
export type ReplayKind = (typeof replayKinds)[number];

/** What may be done to one that isn't at its end. */
export type ReplayWish = 'pause' | 'resume' | 'cancel';

export const replayOrders = ['oldest', 'newest'] as const;
export type ReplayOrder = (typeof replayOrders)[number];

/** Why something of the set was not sent. */
export const skipNotes = [
  'succeeded_meanwhile',
  'in_progress',
  'delivery_exists',
  'letter_resolved',
  'endpoint_disabled',
  'endpoint_expired',
  'endpoint_deleted',
  'payload_expired',
  'purged',
] as const;
export type SkipNote = (typeof skipNotes)[number];

export function isAtItsEnd(status: ReplayStatus): boolean {
  return status === 'completed' || status === 'cancelled';
}
