import type { Lane, Part } from './estate.js';

/** Set by the environment: docs/performance.md names them. */
export const lane: Lane = process.env['ENDURANCE_LANE'] === 'express' ? 'express' : 'default';
export const minutes = numberOf('ENDURANCE_MINUTES', 15);
/** Events a second; well below what a small machine delivers, so that what waits waits because of a kill. */
export const perSecond = numberOf('ENDURANCE_RATE', 6);
export const events = numberOf('ENDURANCE_EVENTS', 1_000);

/** Whose process makes the first attempts. */
export const senders: readonly Part[] = lane === 'express' ? ['api', 'worker'] : ['worker'];

/** A killed worker's first attempts go on when their workflow task times out: by default 10 s after they began. */
export const extra = {
  POSTHORN_TEMPORAL_WORKFLOW_TASK_TIMEOUT: '5s',
  POSTHORN_DELIVERY_RETRY_WAITS: '1s,1s,2s,2s,4s,4s,8s,8s,8s,8s',
};

function numberOf(name: string, otherwise: number): number {
  const value = Number(process.env[name] ?? otherwise);
  if (!(value > 0)) throw new Error(`${name} must be a number above 0`);
  return value;
}
