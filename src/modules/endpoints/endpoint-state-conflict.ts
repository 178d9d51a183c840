import type { Action, ActionResult } from '../../database/endpoint-actions.js';
import { Problem } from '../../http/problems/problem.js';

type Conflict = Extract<ActionResult, { kind: 'conflict' }>;

const remedies: Readonly<Record<Action, string>> = {
  resume: 'resume it, with POST …/resume',
  enable: 'enable it, with POST …/enable',
  renew: 'renew it first, with POST …/renew',
};

/** Says which state doesn't allow the action, and what leads out of it. */
export function stateConflict({ status, remedy }: Conflict): Problem {
  const state = status === 'disabled' && remedy === 'renew' ? 'disabled, and its expires_at has passed' : status;
  return new Problem(409, 'endpoint_state_conflict', `The endpoint is ${state}: ${remedies[remedy]}`);
}
