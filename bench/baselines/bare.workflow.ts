import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';

interface Activities {
  /** Of what happened, only the number goes into the history. */
  step(sentUs: number, subject: string): Promise<void>;
}

const ordinary = proxyActivities<Activities>({ startToCloseTimeout: '30s' });
const local = proxyLocalActivities<Activities>({ startToCloseTimeout: '30s' });

/** The engine without Posthorn: a workflow with one ordinary activity. */
export async function bareOrdinary(sentUs: number, subject: string): Promise<void> {
  await ordinary.step(sentUs, subject);
}

/** The same with a local activity, which runs inside the first workflow task. */
export async function bareLocal(sentUs: number, subject: string): Promise<void> {
  await local.step(sentUs, subject);
}
