import type { WorkflowHandle } from '@temporalio/client';
import { newId } from '../../src/security/new-id.js';
import { heldAnswer, type ModelDelivery } from '../support/delivery-model.js';
import type { NoticeType } from '../../src/domain/closed-lists.js';
import type { ModelHealth } from '../support/endpoint-model.js';
import { until } from '../support/posthorn.js';
import type { WorkflowEngine } from '../support/workflow-engine.js';

/** Plays a story to its end, and answers the workflow whose history is to be kept. */
export type Scenario = (engine: WorkflowEngine) => Promise<WorkflowHandle>;

async function toTheEnd(engine: WorkflowEngine, delivery: ModelDelivery): Promise<WorkflowHandle> {
  await engine.ending(delivery.id);
  return engine.handle(delivery.id);
}

async function waiting(engine: WorkflowEngine, delivery: ModelDelivery): Promise<WorkflowHandle> {
  const handle = await engine.dispatch(delivery);
  await until('it waits', async () => (await handle.query<{ phase: string }>('state')).phase === 'waiting');
  return handle;
}

async function twoWindows(engine: WorkflowEngine): Promise<WorkflowHandle> {
  const endpointId = newId('we_');
  const announced = (): number => engine.model.announced.filter((one) => one.endpointId === endpointId).length;
  engine.model.addLetters(endpointId, 1);
  await engine.gateway.letterAdded(endpointId);
  await until('the first window', async () => announced() === 1);
  engine.model.addLetters(endpointId, 3);
  await engine.gateway.letterAdded(endpointId);
  const handle = engine.env.client.workflow.getHandle(`dead-letter-queue/${endpointId}`);
  await handle.result();
  return handle;
}

/** Days go by until the owner is told of this, and then the endpoint is deleted. */
async function healthUntil(
  engine: WorkflowEngine,
  endpoint: ModelHealth,
  told: NoticeType,
  then: () => Promise<void> = async () => undefined,
): Promise<WorkflowHandle> {
  await engine.gateway.endpointChanged(endpoint.id);
  await until(`${told} is told`, async () => {
    await engine.env.sleep('12 hours');
    return endpoint.told.includes(told);
  });
  await then();
  endpoint.deleted = true;
  await engine.gateway.endpointChanged(endpoint.id);
  const handle = engine.env.client.workflow.getHandle(`endpoint-health/${endpoint.id}`);
  await handle.result();
  return handle;
}

/** A history's name says what it pins. */
export const scenarios: Record<string, Scenario> = {
  'deliver-first-attempt-success': async (engine) => {
    const delivery = engine.model.add([200]);
    await engine.dispatch(delivery);
    return toTheEnd(engine, delivery);
  },
  'deliver-ordinary-first-attempt': async (engine) => {
    const delivery = engine.model.add([200], {}, { quick: false });
    await engine.dispatch(delivery);
    return toTheEnd(engine, delivery);
  },
  'deliver-exhausted': async (engine) => {
    const delivery = engine.model.add([500, 502, 503, 404, 500, 500]);
    await engine.dispatch(delivery);
    return toTheEnd(engine, delivery);
  },
  'deliver-endpoint-gone': async (engine) => {
    const delivery = engine.model.add([500, 410]);
    await engine.dispatch(delivery);
    return toTheEnd(engine, delivery);
  },
  'deliver-cancelled-while-waiting': async (engine) => {
    const delivery = engine.model.add([500]);
    await (await waiting(engine, delivery)).signal('cancel');
    return toTheEnd(engine, delivery);
  },
  'deliver-cancellation-requested-while-waiting': async (engine) => {
    const delivery = engine.model.add([500]);
    await (await waiting(engine, delivery)).cancel();
    return toTheEnd(engine, delivery);
  },
  'deliver-retried-now-while-waiting': async (engine) => {
    const delivery = engine.model.add([500, 500, 200]);
    await (await waiting(engine, delivery)).signal('retryNow');
    return toTheEnd(engine, delivery);
  },
  'deliver-redelivered-while-closing': async (engine) => {
    const held = heldAnswer();
    const delivery = engine.model.add([held.answer, 200]);
    await engine.dispatch(delivery);
    await held.arrived;
    delivery.cancelRow();
    delivery.openNextRound(await engine.model.nowMs());
    await engine.gateway.redeliver(delivery.start);
    held.give(500);
    return toTheEnd(engine, delivery);
  },
  'deliver-started-by-hand': async (engine) => {
    const delivery = engine.model.add([500, 200], { status: 'succeeded', reason: 'delivered', attemptCount: 1 });
    await engine.startByHand(delivery.id);
    return toTheEnd(engine, delivery);
  },
  'deliver-unrecorded': async (engine) => {
    const delivery = engine.model.add([200]);
    delivery.recordFailures = Number.POSITIVE_INFINITY;
    await engine.dispatch(delivery);
    await until('recordAttempt has failed', async () => delivery.recordings >= 1);
    delivery.recordFailures = 0;
    return toTheEnd(engine, delivery);
  },
  'deliver-outcome-unknown': async (engine) => {
    const delivery = engine.model.add([500, 200]);
    delivery.deaths.push(null, 'before recording');
    await engine.dispatch(delivery);
    return toTheEnd(engine, delivery);
  },
  'deliver-not-sent': async (engine) => {
    const delivery = engine.model.add([200]);
    delivery.loadFailures = 3;
    await engine.dispatch(delivery);
    return toTheEnd(engine, delivery);
  },
  'deliver-held': async (engine) => {
    const delivery = engine.model.add([200], {}, { status: 'paused' });
    await engine.dispatch(delivery);
    return toTheEnd(engine, delivery);
  },
  'deliver-invalid-input': async (engine) => {
    await engine.startByHand('a-name-of-its-own', { deliveryId: newId('whd_') });
    await engine.ending('a-name-of-its-own');
    return engine.handle('a-name-of-its-own');
  },
  'dead-letter-queue-two-windows': (engine) => twoWindows(engine),
  // The same, since it continues as new in the middle of a window.
  'dead-letter-queue-bounded-windows': (engine) => twoWindows(engine),
  'endpoint-health-failing-to-recovered': async (engine) => {
    const endpoint = await engine.endpoints.add();
    endpoint.attempt('failed', await engine.model.nowMs());
    return healthUntil(engine, endpoint, 'endpoint.disabled', async () => {
      endpoint.answers = true;
      await engine.env.sleep('2 hours');
    });
  },
  'endpoint-health-verified-then-gone': async (engine) => {
    const endpoint = await engine.endpoints.addUnverified();
    await engine.gateway.endpointChanged(endpoint.id);
    await until('it was asked', async () => endpoint.calls.length > 0);
    endpoint.answers = true;
    await engine.env.sleep('1 minute');
    endpoint.attempt('gone', await engine.model.nowMs());
    return healthUntil(engine, endpoint, 'endpoint.disabled');
  },
  'endpoint-health-expired': async (engine) => {
    const endpoint = await engine.endpoints.add();
    endpoint.expiresAtMs = (await engine.model.nowMs()) + 8 * 86_400_000;
    return healthUntil(engine, endpoint, 'endpoint.expired');
  },
};
