import type { EndpointStatus } from '../../src/domain/closed-lists.js';

/** The endpoint's id alone, so that anybody can start the workflow from the Web UI or the CLI. */
export interface EndpointHealthInput {
  readonly endpointId: string;
}

/** Signal: something about the endpoint changed. It carries nothing: Postgres knows what. */
export const endpointHealthSignals = { changed: 'changed' } as const;
export const endpointHealthQueries = { state: 'state' } as const;

/** Answer of the `state` query, for the Web UI. */
export interface EndpointHealthState {
  readonly status: EndpointStatus | 'deleted' | 'unknown';
  readonly statusReason: string | null;
  /** What the workflow does now, or waits for. */
  readonly doing: string;
  /** Milliseconds of the wait in progress and when it began (workflow time, RFC 3339); null while it works, or waits for a change. */
  readonly waitMs: number | null;
  readonly waitingSince: string | null;
  /** What is to come as things stand, soonest first; workflow time, RFC 3339. */
  readonly coming: readonly { readonly what: string; readonly at: string }[];
}
