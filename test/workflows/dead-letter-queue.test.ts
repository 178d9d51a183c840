import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/posthorn.js';
import { WorkflowEngine } from '../support/workflow-engine.js';
import type { DeadLetterQueueState } from '../../workflows/contracts/dead-letter-queue.js';
import { newId } from '../../src/security/new-id.js';

const minute = 60_000;
const day = 24 * 60 * minute;

let engine: WorkflowEngine;
beforeAll(async () => void (engine = await WorkflowEngine.start({ alertWindowMs: minute })));
afterAll(() => engine.stop());

const announced = (endpointId: string) => engine.model.announced.filter((one) => one.endpointId === endpointId);
const queue = (endpointId: string) => engine.env.client.workflow.getHandle(`dead-letter-queue/${endpointId}`);

async function addLetters(endpointId: string, count: number): Promise<void> {
  engine.model.addLetters(endpointId, count);
  await engine.gateway.letterAdded(endpointId);
}

describe('the dead-letter queue of an endpoint', () => {
  it('announces the first letter at once, those of a window together, and ends after a quiet day', async () => {
    const endpointId = newId('we_');
    const startedAtMs = await engine.model.nowMs();
    await addLetters(endpointId, 1);
    await until('the first letter is announced', async () => announced(endpointId).length === 1);
    for (const count of [2, 3, 5]) await addLetters(endpointId, count);
    // Real time goes on, skipped time doesn't yet: the window is still open.
    expect(announced(endpointId)).toHaveLength(1);
    const view = (await queue(endpointId).result()) as DeadLetterQueueState;
    const [first, second, ...more] = announced(endpointId);
    expect(more).toEqual([]);
    expect([first!.letters, second!.letters]).toEqual([1, 10]);
    expect(second!.atMs - first!.atMs).toBeGreaterThanOrEqual(minute - 1_000);
    expect(view).toMatchObject({ announcements: 2, lettersAnnounced: 11, openLetters: 11 });
    const { closeTime } = await queue(endpointId).describe();
    const idleMs = closeTime!.getTime() - second!.atMs;
    expect(idleMs).toBeGreaterThanOrEqual(day);
    expect(idleMs).toBeLessThan(day + 5 * minute);
    expect(first!.atMs - startedAtMs).toBeLessThan(minute);
  });

  it('begins again with the next letter', async () => {
    const endpointId = newId('we_');
    await addLetters(endpointId, 1);
    await queue(endpointId).result();
    await addLetters(endpointId, 1);
    await queue(endpointId).result();
    expect(announced(endpointId).map(({ letters }) => letters)).toEqual([1, 1]);
  });

  it('counts no announcement where the letters were announced before', async () => {
    const endpointId = newId('we_');
    await engine.gateway.letterAdded(endpointId);
    expect(await queue(endpointId).result()).toMatchObject({ announcements: 0, lastAnnouncedAt: null });
  });

  it('continues as new before its history grows long, and keeps its state', async () => {
    const endpointId = newId('we_');
    await addLetters(endpointId, 1);
    const { runId } = await queue(endpointId).describe();
    // Ten days of a letter each minute would do it too; signals are events as well.
    await until('the first letter is announced', async () => announced(endpointId).length === 1);
    for (let batch = 0; batch < 25; batch++) {
      await Promise.all(Array.from({ length: 80 }, () => engine.gateway.letterAdded(endpointId)));
    }
    await addLetters(endpointId, 4);
    const view = (await queue(endpointId).result()) as DeadLetterQueueState;
    expect((await queue(endpointId).describe()).runId).not.toBe(runId);
    expect(announced(endpointId).reduce((sum, { letters }) => sum + letters, 0)).toBe(5);
    expect(view).toMatchObject({ announcements: 2, lettersAnnounced: 5 });
    const first = await engine.env.client.workflow.getHandle(`dead-letter-queue/${endpointId}`, runId).describe();
    expect(first.status.name).toBe('CONTINUED_AS_NEW');
  }, 120_000);

  it('that continued as new in a window keeps to that window', async () => {
    const endpointId = newId('we_');
    await addLetters(endpointId, 1);
    await until('the first letter is announced', async () => announced(endpointId).length === 1);
    const { runId } = await queue(endpointId).describe();
    for (let batch = 0; batch < 25; batch++) {
      await Promise.all(Array.from({ length: 80 }, () => engine.gateway.letterAdded(endpointId)));
    }
    await until('it has continued as new', async () => (await queue(endpointId).describe()).runId !== runId);
    await addLetters(endpointId, 2);
    expect(announced(endpointId)).toHaveLength(1);
    await queue(endpointId).result();
    const [first, second] = announced(endpointId);
    expect(second!.atMs - first!.atMs).toBeGreaterThanOrEqual(minute - 1_000);
    expect(second!.atMs - first!.atMs).toBeLessThan(2 * minute);
  }, 120_000);

  it.each([
    ['no input', undefined],
    ['no window', { endpointId: newId('we_') }],
    ['a window that is no number', { endpointId: newId('we_'), windowMs: 'soon' }],
    ['what is no endpoint', { endpointId: 'orders', windowMs: 1_000 }],
  ])('fails by name with %s', async (_, input) => {
    const handle = await engine.env.client.workflow.start('deadLetterQueue', {
      workflowId: `dead-letter-queue/${input?.endpointId ?? 'none'}`,
      taskQueue: 'posthorn-control',
      args: input === undefined ? [] : [input],
    });
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'InvalidInput' } });
  });
});
