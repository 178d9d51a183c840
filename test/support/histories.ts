import type { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { until } from './posthorn.js';

/** All that stands in the histories of these workflows, payloads decoded. */
export async function readHistories(client: Client, workflowIds: readonly string[]): Promise<string> {
  let text = '';
  for (const id of workflowIds) {
    const handle = client.workflow.getHandle(id);
    await until(`${id} has a history`, async () => (await handle.fetchHistory()).events?.length);
    const history = await handle.fetchHistory();
    text += JSON.stringify(historyToJSON(history), (_, value: unknown) =>
      // Payloads are base64 in the JSON form.
      typeof value === 'string' && /^[A-Za-z0-9+/]{8,}={0,2}$/.test(value)
        ? `${value} ${Buffer.from(value, 'base64').toString('utf8')}`
        : value,
    );
  }
  return text;
}
