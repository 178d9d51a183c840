/** Every stable `code` of the API's problem details; docs/reference/errors.md has a row for each. */
export const problemTitles = {
  malformed_json: 'The body is not JSON',
  invalid_encoding: 'The body is not UTF-8',
  too_deep: 'The body is nested too deeply',
  too_large: 'The body is too large',
  too_many_events: 'The batch has too many events',
  missing_field: 'A field is missing',
  invalid_field: 'A field is not valid',
  unknown_field: 'A field is not known',
  duplicate_field: 'A field is there twice',
  invalid_schema: 'The JSON Schema can not be used',
  invalid_conversion: 'The conversion can not be used',
  schema_mismatch: 'The data does not fit its schema',
  unregistered_type: 'The event type is not registered',
  catalogue_full: 'The catalogue is too large',
  invalid_url: 'The URL can not be delivered to',
  invalid_idempotency_key: 'The Idempotency-Key is not valid',
  idempotency_conflict: 'The Idempotency-Key was used for another request',
  event_id_conflict: 'The event id was used for another event',
  unsupported_media_type: 'The Content-Type is not supported',
  unauthorized: 'The API key is missing or wrong',
  tenant_forbidden: 'The API key belongs to another tenant',
  not_found: 'There is no such thing',
  method_not_allowed: 'The method is not allowed here',
  letter_resolved: 'The dead letter is resolved',
  delivery_closed: 'The delivery is closed',
  payload_expired: 'The payload is gone',
  endpoint_unavailable: 'The endpoint takes no deliveries',
  endpoint_state_conflict: 'The state of the endpoint does not allow it',
  replay_closed: 'The replay is at its end',
  replay_too_large: 'The replay would take too many',
  already_verified: 'The endpoint is verified',
  too_many_secrets: 'The endpoint has too many secrets',
  secret_in_use: 'The secret is the current one',
  precondition_failed: 'The thing was changed meanwhile',
  too_many_requests: 'Too many requests',
  invalid_request: 'The request is not valid HTTP',
  database_unavailable: 'The database is away',
  internal_error: 'Something broke on our side',
} as const;

export type ProblemCode = keyof typeof problemTitles;

export interface ProblemOptions {
  /** The field, header or parameter that is wrong. */
  readonly field?: string | null;
  /** Further faults of the same request. */
  readonly errors?: readonly { readonly field: string | null; readonly detail: string }[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer in problem details (RFC 9457): a stable code, the field, and what would be right. */
export class Problem extends Error {
  override readonly name = 'Problem';
  constructor(
    readonly status: number,
    readonly code: ProblemCode,
    readonly detail: string,
    readonly options: ProblemOptions = {},
  ) {
    super(detail);
  }

  toJSON(): object {
    const { field, errors } = this.options;
    return {
      type: `urn:posthorn:problem:${this.code}`,
      title: problemTitles[this.code],
      status: this.status,
      code: this.code,
      detail: this.detail,
      ...(field === undefined || field === null ? {} : { field }),
      ...(errors === undefined || errors.length < 2 ? {} : { errors }),
    };
  }
}

export const notFound = (what: string, id: string): Problem =>
  new Problem(404, 'not_found', `There is no ${what} '${printableName(id)}'`);

/** Names in a request are of any length and content; an answer has to stay short and printable. */
export function printableName(name: string): string {
  return name.slice(0, 64).replace(/[\p{Cc}\p{Cs}]/gu, '\ufffd');
}
