export interface AnnounceInput {
  readonly endpointId: string;
}

export interface AnnounceResult {
  /** Letters that this announcement covers; 0 when all were announced before. */
  readonly announced: number;
  /** Letters of the endpoint that are still unresolved. */
  readonly open: number;
}

/** Ordinary activities on `posthorn-control`. */
export interface DeadLetterActivities {
  /** One alert for all letters of the endpoint that nobody was told of yet. Announcing twice covers each letter once. */
  announceDeadLetters(input: AnnounceInput): Promise<AnnounceResult>;
}
