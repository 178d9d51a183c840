/** One HTTP request as it goes out. */
export interface OutboundRequest {
  readonly method: 'POST' | 'OPTIONS';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
  /** For the whole attempt, from dialling to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Whose request it is, and how many of theirs may be in flight: the endpoint's id and its `max_in_flight`. */
  readonly slot?: { readonly key: string; readonly max: number };
}
