import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptRecord, LoadedDelivery, RecordResult } from '../../../src/database/attempt-rows.js';
import { DeliveryModel } from '../../support/delivery-model.js';
import { Attempts } from './harness.js';

/** The in-memory model under the workflow tests must say what the statements say. */

let attempts: Attempts;
beforeAll(async () => void (attempts = await Attempts.start()));
afterAll(() => attempts.stop());

type Step =
  | { readonly record: Partial<AttemptRecord> }
  | { readonly cancelRun: { readonly runId: string; readonly round: number } }
  | 'API cancels'
  | 'API redelivers'
  | 'endpoint is deleted';

const fails: Partial<AttemptRecord> = { statusCode: 500, errorCode: 'http_status', outcome: 'failed' };

const stories: Record<string, readonly Step[]> = {
  'a success': [{ record: {} }],
  'a slow success': [{ record: { durationMs: 3_000 } }],
  'the same attempt twice': [{ record: fails }, { record: {} }],
  'a failure, then a success': [{ record: fails }, { record: { sequence: 2 } }],
  exhaustion: [{ record: fails }, { record: { ...fails, sequence: 2, waitMs: null } }],
  'a rest': [{ record: { ...fails, statusCode: 503, restMs: 600_000, waitMs: 600_000 } }, { record: { sequence: 2 } }],
  'a 410': [{ record: { ...fails, statusCode: 410, gone: true } }],
  'cancelled in flight, failed': ['API cancels', { record: fails }],
  'cancelled in flight, exhausted': ['API cancels', { record: { ...fails, waitMs: null } }],
  'cancelled in flight, delivered': ['API cancels', { record: {} }],
  'redelivered in flight, failed': ['API cancels', 'API redelivers', { record: fails }],
  'redelivered in flight, delivered': ['API cancels', 'API redelivers', { record: {} }],
  'a second round': [{ record: {} }, 'API redelivers', { record: { ...fails, sequence: 2, round: 2 } }],
  'cancelled by its run': [{ record: fails }, { cancelRun: { runId: 'run-1', round: 1 } }],
  'cancelled by a run that knows nothing': [{ cancelRun: { runId: 'run-1', round: 0 } }],
  'cancelled by a run of an earlier round': [
    { record: {} },
    'API redelivers',
    { cancelRun: { runId: 'run-1', round: 1 } },
  ],
  'deleted while it waits': [{ record: fails }, 'endpoint is deleted'],
};

const minutes = (ms: number): number => Math.max(0, Math.round(ms / 60_000));

/** All that the runner looks at, without what differs by a clock or a name. */
function seen(row: LoadedDelivery | null): unknown {
  const { status, reason, round, attemptCount, roundAttempts, lastStatusCode, lastError, wakeRequested, recorded } =
    row!;
  const { endpoint, dueInMs, restsForMs, runHasAttempts } = row!;
  return {
    status,
    reason,
    round,
    attemptCount,
    roundAttempts,
    lastStatusCode,
    lastError,
    wakeRequested,
    runHasAttempts,
    dueIn: minutes(dueInMs),
    restsFor: minutes(restsForMs),
    recorded: recorded && { number: recorded.number, outcome: recorded.outcome, statusCode: recorded.statusCode },
    endpoint: {
      status: endpoint.status,
      quick: endpoint.quick,
      before: endpoint.succeededBefore,
      gone: endpoint.deleted,
    },
  };
}

/** The endpoint's health is no matter of the model. */
const result = (of: RecordResult | null): unknown =>
  of && { ...of, waitMs: Math.round(of.waitMs / 1_000), healthChanged: false };

describe('the model and the database say the same of', () => {
  it.each(Object.entries(stories))('%s', async (_, steps) => {
    const model = new DeliveryModel(
      async () => Date.now(),
      async () => undefined,
    );
    const modelled = model.add();
    const real = await attempts.publish('https://hooks.example.com/in');
    const { attempts: modelStore, deliveries: modelDeliveries, waiting: modelWaiting } = model.stores;
    const by = { keyId: 'key_1', reason: null };
    for (const step of steps) {
      if (step === 'API cancels') {
        modelled.cancelRow();
        await attempts.deliveries.cancel('default', real.id, by);
      } else if (step === 'API redelivers') {
        modelled.openNextRound(Date.now());
        await attempts.deliveries.redeliver('default', real.id, by);
      } else if (step === 'endpoint is deleted') {
        modelled.endpoint.deleted = true;
        await attempts.endpoints.delete('default', real.endpointId);
        const closed = await attempts.waiting.closeOne(real.id);
        expect((await modelWaiting.closeOne(modelled.id))?.status).toBe(closed?.status);
      } else if ('cancelRun' in step) {
        const closed = await attempts.deliveries.cancelFromWorkflow({
          requestedRound: null,
          deliveryId: real.id,
          ...step.cancelRun,
        });
        const asModelled = await modelDeliveries.cancelFromWorkflow({
          requestedRound: null,
          deliveryId: modelled.id,
          ...step.cancelRun,
        });
        expect({ ...asModelled, labels: null }).toEqual({ ...closed, labels: null });
      } else {
        const written = await attempts.store.record(attempts.record(real, step.record));
        const asModelled = await modelStore.record(attempts.record(modelled, step.record));
        expect(result(asModelled)).toEqual(result(written));
      }
      for (const key of [1, 2].map((sequence) => ({ runId: 'run-1', sequence }))) {
        const row = await attempts.store.load({ deliveryId: real.id, ...key });
        expect(seen(await modelStore.load({ deliveryId: modelled.id, ...key }))).toEqual(seen(row));
      }
      expect(modelled.letters).toHaveLength((await attempts.lettersOf(real)).length);
    }
  });
});
