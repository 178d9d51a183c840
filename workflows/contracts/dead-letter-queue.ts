export interface DeadLetterQueueInput {
  readonly endpointId: string;
  /** Letters that follow within this time are announced together. */
  readonly windowMs: number;
  /** Carried over when the workflow continues as new. */
  readonly state?: DeadLetterQueueState;
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
