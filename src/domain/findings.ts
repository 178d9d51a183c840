/** What can be wrong between what was accepted and what is stored of it. */
export const gapKinds = [
  /** A waiting row that no sweep would ever find. Repaired: it is swept. */
  'waiting_unswept',
  /** A letter that is open although its delivery succeeded. Repaired: it is resolved. */
  'letter_of_success',
  /** A failed delivery without a letter in its round. Repaired: it gets one. */
  'failed_without_letter',
  /** Waiting rows that should have moved a while ago: Temporal or the workers are away, or behind. */
  'waiting_overdue',
  /** Held at an endpoint that takes deliveries, and nothing lets them go. */
  'held_too_long',
  'succeeded_without_attempt',
  /** An open letter whose delivery isn't failed, although it is still in the letter's round. */
  'letter_without_failure',
  /** Accepted, and never became a delivery for an endpoint that wanted it then and wants it now. */
  'event_without_delivery',
  /** Temporal worked on a delivery that Postgres doesn't know: it was restored to an earlier time. */
  'workflow_without_delivery',
] as const;
export type Gap = (typeof gapKinds)[number];

/** How many, by kind; kinds that were not found are left out. */
export type GapCounts = Readonly<Partial<Record<Gap, number>>>;

export interface Findings {
  readonly repaired: GapCounts;
  readonly gaps: GapCounts;
  /** The first few ids of each kind. */
  readonly examples: Readonly<Partial<Record<Gap, readonly string[]>>>;
}

export function mergeFindings(a: Findings, b: Findings): Findings {
  return {
    repaired: add(a.repaired, b.repaired),
    gaps: add(a.gaps, b.gaps),
    examples: { ...b.examples, ...a.examples },
  };
}

function add(a: GapCounts, b: GapCounts): GapCounts {
  const sum: Record<string, number> = { ...a };
  for (const [kind, n] of Object.entries(b)) sum[kind] = (sum[kind] ?? 0) + n;
  return sum;
}

export const totalOf = (counts: GapCounts): number => Object.values(counts).reduce((sum, n) => sum + n, 0);
