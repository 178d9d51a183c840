/** One HTTP request as it goes out. */
export interface OutboundRequest {
  readonly method: 'POST' | 'OPTIONS';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
  /** For the whole attempt, from dialling to the last byte of the answer. */
  readonly timeoutMs: number;
}
