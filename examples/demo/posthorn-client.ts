/** As much of Posthorn's REST API as the demo needs, with plain `fetch`. */

/** A reason to stop that the reader can act on. */
export class DemoError extends Error {
  override readonly name = 'DemoError';
}

export interface Endpoint {
  readonly id: string;
  readonly status: string;
}

export interface CreatedEndpoint extends Endpoint {
  /** In this answer only. */
  readonly secret: string;
}

export interface PublishedEvent {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string; readonly endpoint_id: string; readonly status: string }[];
}

export interface Delivery {
  readonly id: string;
  readonly status: string;
  readonly reason: string;
  readonly round: number;
  readonly attempt_count: number;
  readonly next_attempt_at: string | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
}

export interface Attempt {
  readonly number: number;
  readonly round: number;
  readonly started_at: string;
  readonly duration_ms: number;
  readonly status_code: number | null;
  readonly error_code: string | null;
}

export class PosthornClient {
  constructor(
    readonly baseUrl: string,
    private readonly apiKey: string,
    private readonly signal: AbortSignal,
  ) {}

  createEndpoint(body: { url: string; events: string[]; description: string; retry_waits_ms: number[] }) {
    return this.call<CreatedEndpoint>('POST', '/v1/webhooks/subscriptions', body);
  }

  endpoint(id: string) {
    return this.call<Endpoint>('GET', `/v1/webhooks/subscriptions/${id}`);
  }

  /** Goes through although the demo was interrupted: it cleans up. */
  deleteEndpoint(id: string) {
    return this.call<unknown>('DELETE', `/v1/webhooks/subscriptions/${id}`, undefined, AbortSignal.timeout(10_000));
  }

  publish(body: { type: string; data: unknown }) {
    return this.call<PublishedEvent>('POST', '/v1/events', body);
  }

  /** With `wait` the answer comes when the delivery has ended, or after that time. */
  delivery(id: string, wait?: string) {
    return this.call<Delivery>('GET', `/v1/webhook-deliveries/${id}${wait ? `?wait=${wait}` : ''}`);
  }

  async attempts(id: string): Promise<readonly Attempt[]> {
    return (await this.call<{ data: Attempt[] }>('GET', `/v1/webhook-deliveries/${id}/attempts`)).data;
  }

  async failedDeliveries(endpointId: string): Promise<readonly Delivery[]> {
    const query = new URLSearchParams({ status: 'failed', endpoint_id: endpointId });
    return (await this.call<{ data: Delivery[] }>('GET', `/v1/webhook-deliveries?${query.toString()}`)).data;
  }

  redeliver(id: string, reason: string) {
    return this.call<unknown>('POST', `/v1/webhook-deliveries/${id}/redeliver`, { reason });
  }

  private async call<T>(method: string, path: string, body?: unknown, signal = this.signal): Promise<T> {
    let response: Response;
    let text: string;
    try {
      response = await fetch(this.baseUrl + path, {
        method,
        headers: {
          Authorization: `Bearer ${this.apiKey}`,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
      });
      text = await response.text();
    } catch (error) {
      if (signal.aborted) throw new DemoError('interrupted', { cause: error });
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      throw new DemoError(
        `Posthorn does not answer at ${this.baseUrl} (${cause || 'no connection'}). Start it in another terminal: npm start`,
        { cause: error },
      );
    }
    if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T;
    if (response.status === 401) {
      throw new DemoError(
        `Posthorn refused the API key (401). Set POSTHORN_API_KEY to the one that npm start printed, or remove it to use the data directory's`,
      );
    }
    throw new DemoError(`${method} ${path} answered ${response.status}: ${text.slice(0, 1_000)}`);
  }
}
