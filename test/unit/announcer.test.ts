import { expect, it, vi } from 'vitest';
import { TemporalAnnouncer } from '../../src/temporal/announcer.js';
import type { TemporalGateway } from '../../src/temporal/gateway.js';

const nothing = (): void => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

function announcer(signal: (endpointId: string) => Promise<void>) {
  return new TemporalAnnouncer({ endpointChanged: signal, letterAdded: signal } as unknown as TemporalGateway, log);
}

it('a flood of changes of one endpoint is few signals, and the last change is told', async () => {
  const told: string[] = [];
  const subject = announcer(async (endpointId) => void told.push(endpointId));
  await Promise.all(Array.from({ length: 1_000 }, () => subject.endpointChanged('we_1')));
  await vi.waitFor(() => expect(told).toEqual(['we_1', 'we_1']), 5_000);
  await subject.endpointChanged('we_1');
  await vi.waitFor(() => expect(told.length).toBeGreaterThanOrEqual(3), 5_000);
  await subject.stop();
});

it('endpoints don’t wait for each other, nor letters for changes', async () => {
  const told: string[] = [];
  const subject = announcer(async (endpointId) => void told.push(endpointId));
  await Promise.all([subject.endpointChanged('we_1'), subject.endpointChanged('we_2'), subject.letterAdded('we_1')]);
  expect(told.toSorted()).toEqual(['we_1', 'we_1', 'we_2']);
  await subject.stop();
});

it('a Temporal that is away keeps nobody, and fails nobody', async () => {
  const subject = announcer(() => Promise.reject(new Error('away')));
  await subject.endpointChanged('we_1');
  const hanging = announcer(() => new Promise(() => undefined));
  const startedAt = performance.now();
  await hanging.letterAdded('we_1');
  expect(performance.now() - startedAt).toBeLessThan(4_000);
  await subject.stop();
  await hanging.stop();
});

it('many endpoints that are told at once are no leak', async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on('warning', warned);
  const subject = announcer(async () => undefined);
  await Promise.all(Array.from({ length: 30 }, (_, n) => subject.endpointChanged(`we_${n}`)));
  await new Promise((resolve) => setImmediate(resolve));
  await subject.stop();
  process.off('warning', warned);
  expect(warnings).toEqual([]);
});
