import { isDeliveryId } from '../domain/ids.js';
import { workflowTypes } from '../../workflows/contracts/names.js';
import type { TemporalConnection } from './connection.js';
import { TemporalAwayError } from './gateway.js';

/** What Temporal's visibility lists; it lags a little. */
export class DeliveryRuns {
  constructor(private readonly connection: TemporalConnection) {}

  /** Ids of deliveries whose workflow was started since then, newest first, `limit` runs at most. */
  async startedSince(since: Date, limit: number): Promise<string[]> {
    const { client } = this.connection;
    if (!client) throw new TemporalAwayError();
    const query = `WorkflowType = '${workflowTypes.deliver}' AND StartTime >= '${since.toISOString()}'`;
    const ids = new Set<string>();
    let listed = 0;
    for await (const { workflowId } of client.workflow.list({ query, pageSize: 1_000 })) {
      // Somebody may start a workflow by hand under any id: that says nothing of deliveries.
      if (isDeliveryId(workflowId)) ids.add(workflowId);
      listed += 1;
      if (listed >= limit) break;
    }
    return [...ids];
  }
}
