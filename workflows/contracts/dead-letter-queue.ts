export interface DeadLetterQueueInput {
  readonly endpointId: string;
  /** Letters that follow within this time are announced together. */
  readonly windowMs: number;
  /** Carried over when the workflow continues as new. */
  readonly state?: DeadLetterQueueState;
  /** When the window ends in which the workflow continued as new; milliseconds since the epoch. */
  readonly windowEndsAtMs?: number;
}

/** Signal: letters of the endpoint exist that nobody was told of. It carries nothing: Postgres knows which. */
export const deadLetterQueueSignals = { letterAdded: 'letterAdded' } as const;
export const deadLetterQueueQueries = { state: 'state' } as const;

export interface DeadLetterQueueState {
  readonly announcements: number;
  readonly lettersAnnounced: number;
  readonly openLetters: number;
  readonly lastAnnouncedAt: string | null;
}
