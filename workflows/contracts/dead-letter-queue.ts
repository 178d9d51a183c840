export interface DeadLetterQueueInput {
  readonly endpointId: string;
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
