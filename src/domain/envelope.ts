export interface EnvelopeFields {
  readonly deliveryId: string;
  readonly type: string;
  /** RFC 3339, UTC, milliseconds. */
  readonly createdAt: string;
  readonly apiVersion: string | null;
  /** JSON text. It goes in as it stands: parsing and serialising would change numbers, escapes and key order. */
  readonly data: string;
}

/** The body of a delivery in the `default` profile. */
export function defaultEnvelope({ deliveryId, type, createdAt, apiVersion, data }: EnvelopeFields): string {
  const head = JSON.stringify({ delivery_id: deliveryId, type, created_at: createdAt, api_version: apiVersion });
  return `${head.slice(0, -1)},"data":${data}}`;
}
