import type { DataSource } from 'typeorm';
import type { EndpointStatus } from '../domain/closed-lists.js';

export interface AskedEndpoint {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly filter: string | null;
  readonly status: EndpointStatus;
}

export const mostAskedEndpoints = 250;

/** The tenant's newest endpoints, with what decides about events. */
export function endpointsToAsk(db: DataSource, tenantId: string): Promise<AskedEndpoint[]> {
  return db.query<AskedEndpoint[]>(
    `select id, url, events, filter, status from endpoints
      where tenant_id = $1 and deleted_at is null order by id desc limit ${mostAskedEndpoints}`,
    [tenantId],
  );
}
