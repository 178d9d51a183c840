import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WorkflowEngine } from '../support/workflow-engine.js';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

let engine: WorkflowEngine;
beforeAll(async () => void (engine = await WorkflowEngine.start()));
afterAll(() => engine.stop());

/** The pauses between the requests that left, in milliseconds. */
const pauses = (sentAtMs: readonly number[]): number[] => sentAtMs.slice(1).map((at, i) => at - sentAtMs[i]!);

/** Timers fire a little late, never early. */
const slackMs = 5 * second;

function expectWithin(ms: number | undefined, low: number, high: number): void {
  expect(ms).toBeGreaterThanOrEqual(low);
  expect(ms).toBeLessThanOrEqual(high);
}

describe('a delivery whose endpoint never accepts it', () => {
  it('is tried six times, after waits within 20 % of 1 m, 5 m, 30 m, 2 h and 12 h, and ends as DeliveryExhausted', async () => {
    const delivery = engine.model.add([500, 500, 500, 500, 500, 500, 200]);
    await engine.dispatch(delivery);
    expect(await engine.ending(delivery.id)).toMatchObject({ status: 'FAILED', failure: 'DeliveryExhausted' });
    expect(delivery.sentAtMs).toHaveLength(6);
    const schedule = [minute, 5 * minute, 30 * minute, 2 * hour, 12 * hour];
    for (const [index, wait] of pauses(delivery.sentAtMs).entries()) {
      expectWithin(wait, 0.8 * schedule[index]!, 1.2 * schedule[index]! + slackMs);
    }
    expect(delivery.row).toMatchObject({ status: 'failed', reason: 'attempts_exhausted', attemptCount: 6 });
    expect(delivery.letters).toEqual([{ round: 1, reason: 'attempts_exhausted' }]);
  });
});
