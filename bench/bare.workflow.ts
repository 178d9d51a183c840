import { proxyActivities } from '@temporalio/workflow';

const { noop } = proxyActivities<{ noop(): Promise<void> }>({ startToCloseTimeout: '30s' });

/** The engine without Posthorn: a workflow with one ordinary activity that does nothing. */
export async function bare(): Promise<void> {
  await noop();
}
