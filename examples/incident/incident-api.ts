import { DemoError } from '../demo/posthorn-client.js';

export interface Endpoint {
  readonly id: string;
  readonly status: string;
  readonly status_reason: string | null;
}

export interface Replay {
  readonly id: string;
  readonly status: string;
  readonly progress: {
    readonly total: number;
    readonly started: number;
    readonly skipped: number;
    readonly waiting: number;
  };
  readonly outcomes: { readonly succeeded: number; readonly failed: number; readonly in_progress: number };
}

export interface FollowedEvent {
  readonly id: string;
  readonly delivery: { readonly status: string } | null;
}

interface Page<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
}

const pageSize = 250;

/** The calls of the story, with plain `fetch`. */
export class IncidentApi {
  constructor(
    private readonly baseUrl: string,
    private readonly apiKey: string,
  ) {}

  createEndpoint = (body: object) => this.#call<Endpoint>('POST', '/v1/webhooks/subscriptions', body);
  endpoint = (id: string) => this.#call<Endpoint>('GET', `/v1/webhooks/subscriptions/${id}`);
  enable = (id: string) => this.#call<Endpoint>('POST', `/v1/webhooks/subscriptions/${id}/enable`);
  publish = (type: string, data: object) => this.#call<{ readonly id: string }>('POST', '/v1/events', { type, data });
  replay = (id: string) => this.#call<Replay>('GET', `/v1/replays/${id}`);

  recover(endpointId: string, body: { since: string; rate_per_second: number; reason: string }) {
    return this.#call<Replay>('POST', `/v1/webhooks/subscriptions/${endpointId}/recover`, body);
  }

  countRecoverable(endpointId: string, since: string) {
    return this.#call<{ readonly total: number }>('POST', `/v1/webhooks/subscriptions/${endpointId}/recover`, {
      since,
      dry_run: true,
    });
  }

  /** How many deliveries to the endpoint have this status. */
  async countDeliveries(endpointId: string, status: string): Promise<number> {
    let count = 0;
    for (let cursor: string | null = ''; cursor !== null;) {
      const query: string = `endpoint_id=${endpointId}&status=${status}&limit=${pageSize}${cursor && `&cursor=${cursor}`}`;
      const page: Page<unknown> = await this.#call('GET', `/v1/webhook-deliveries?${query}`);
      count += page.data.length;
      cursor = page.next_cursor;
    }
    return count;
  }

  /** Everything that the endpoint subscribes to, by following the feed from its beginning until nothing new comes. */
  async followAll(endpointId: string): Promise<readonly FollowedEvent[]> {
    const events: FollowedEvent[] = [];
    for (let after = ''; ;) {
      const query = `endpoint_id=${endpointId}&limit=${pageSize}${after && `&after=${encodeURIComponent(after)}`}`;
      const page: Page<FollowedEvent> = await this.#call('GET', `/v1/events?${query}`);
      events.push(...page.data);
      if (page.next_cursor === null || page.next_cursor === after || page.data.length === 0) return events;
      after = page.next_cursor;
    }
  }

  async #call<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(this.baseUrl + path, {
      method,
      headers: {
        Authorization: `Bearer ${this.apiKey}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    if (!response.ok) throw new DemoError(`${method} ${path} answered ${response.status}: ${text.slice(0, 1_000)}`);
    return JSON.parse(text) as T;
  }
}
