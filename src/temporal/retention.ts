import { msToTs } from '@temporalio/common/lib/time.js';
import type { Logger } from '../telemetry/logger.js';
import type { TemporalConnection } from './connection.js';

/** How long closed workflows stay visible on the embedded server. */
const retentionDays = 31;

/** A new namespace of the development server forgets closed workflows after a day; the embedded default keeps them for a month. */
export async function keepHistories({ client, namespace }: TemporalConnection, log: Logger): Promise<void> {
  try {
    const workflowExecutionRetentionTtl = msToTs(`${retentionDays} days`);
    await client?.workflowService.updateNamespace({ namespace, config: { workflowExecutionRetentionTtl } });
  } catch (error) {
    log.warn(
      { namespace, err: error },
      'the namespace’s retention could not be raised: closed workflows disappear from the Web UI sooner',
    );
  }
}
