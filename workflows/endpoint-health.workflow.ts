import {
  ApplicationFailure,
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { HealthPlan, HealthTask } from '../activities/contracts/endpoint-health-activities.js';
import { isEndpointId } from '../src/domain/ids.js';
import {
  endpointHealthQueries,
  endpointHealthSignals,
  type EndpointHealthInput,
  type EndpointHealthState,
} from './contracts/endpoint-health.js';
import { endpointHealthWorkflowId } from './contracts/names.js';
import { endpointCall, health } from './support/activities.js';

export const changed = defineSignal(endpointHealthSignals.changed);
export const state = defineQuery<EndpointHealthState>(endpointHealthQueries.state);

/** Bounded histories: with this many events the workflow continues as new, between two plans. */
const historyLimit = 2_000;

/**
 * One per endpoint, for as long as it lives. Postgres knows what is due and when; this workflow does it at that time, one
 * activity for each thing, so that the timeline tells what the endpoint went through.
 */
export async function endpointHealth(input: EndpointHealthInput): Promise<EndpointHealthState> {
  checkInput(input);
  const { endpointId } = input;
  let signalled = false;
  let view: EndpointHealthState = {
    status: 'unknown',
    statusReason: null,
    doing: 'planning',
    waitMs: null,
    waitingSince: null,
    coming: [],
  };
  setHandler(changed, () => void (signalled = true));
  setHandler(state, () => view);
  let dealtWith: number | null = null;
  for (;;) {
    signalled = false;
    const plan: HealthPlan = await health.planHealth({ endpointId, dealtWith });
    if (plan.kind === 'deleted') return { ...view, status: 'deleted', doing: 'ended' };
    const { status, statusReason, tasks, next, host } = plan;
    const version: number = plan.version;
    const plannedAt = Date.now();
    const coming = plan.coming.map(({ task, inMs }) => ({ what: task, at: new Date(plannedAt + inMs).toISOString() }));
    view = { status, statusReason, doing: 'planning', waitMs: null, waitingSince: null, coming };
    for (const task of tasks) {
      view = { ...view, doing: task };
      await perform(task, endpointId, host);
    }
    dealtWith = version;
    const { continueAsNewSuggested, historyLength } = workflowInfo();
    if (continueAsNewSuggested || historyLength > historyLimit) {
      await condition(allHandlersFinished);
      await continueAsNew<typeof endpointHealth>(input);
    }
    // What was done may have brought something new, so the plan is made anew before anything is waited for.
    if (tasks.length > 0) continue;
    if (next === null) {
      view = { ...view, doing: 'waiting for a change' };
      await condition(() => signalled);
    } else {
      view = { ...view, doing: `waiting to ${next.task}`, waitMs: next.inMs, waitingSince: new Date().toISOString() };
      await condition(() => signalled, next.inMs, { summary: `next: ${next.task}` });
    }
  }
}

async function perform(task: HealthTask, endpointId: string, host: string): Promise<void> {
  switch (task) {
    case 'verify':
      await endpointCall(endpointId, `verify ${host}`).verifyEndpoint({ endpointId });
      return;
    case 'expire_verification':
      await health.expireVerification({ endpointId });
      return;
    case 'ping':
      await endpointCall(endpointId, `ping ${host}`).pingEndpoint({ endpointId });
      return;
    case 'probe':
      await endpointCall(endpointId, `does ${host} answer again?`).probeEndpoint({ endpointId });
      return;
    case 'send_mail':
      await endpointCall(endpointId, 'mail to the owner').sendMail({ endpointId });
      return;
    case 'expire':
      await health.expireEndpoint({ endpointId });
      return;
    case 'disable':
      await health.disableEndpoint({ endpointId });
      return;
    case 'warn':
      await health.warnOwner({ endpointId });
      return;
    case 'tell_disabled':
      await health.tellDisabled({ endpointId });
      return;
    case 'tell_refused':
      await health.tellRefused({ endpointId });
      return;
    case 'tell_recovered':
      await health.tellRecovered({ endpointId });
      return;
    case 'tell_expiring':
      await health.tellExpiring({ endpointId });
      return;
    case 'tell_certificate_expiring':
      await health.tellCertificateExpiring({ endpointId });
      return;
  }
}

function checkInput(input: EndpointHealthInput | undefined): void {
  const endpointId: unknown = input?.endpointId;
  const good =
    typeof endpointId === 'string' &&
    isEndpointId(endpointId) &&
    workflowInfo().workflowId === endpointHealthWorkflowId(endpointId);
  if (good) return;
  throw ApplicationFailure.create({
    type: 'InvalidInput',
    message:
      'Nothing was done: the input must be {"endpointId": "we_…"}, and the workflow id endpoint-health/<endpointId>',
    nonRetryable: true,
  });
}
