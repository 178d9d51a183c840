import { describe, expect, it } from 'vitest';
import { formatTraceparent, parseTraceparent } from '../../src/telemetry/traceparent.js';
import { PassiveTracing } from '../../src/telemetry/tracing.js';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';
const given = `00-${traceId}-${parentId}-01`;

describe('a traceparent', () => {
  it('is read and written', () => {
    expect(parseTraceparent(given)).toEqual({ traceId, parentId, sampled: true });
    expect(parseTraceparent(`00-${traceId}-${parentId}-00`)).toEqual({ traceId, parentId, sampled: false });
    expect(formatTraceparent({ traceId, parentId, sampled: true })).toBe(given);
  });

  it('of a later version is read as far as this one goes', () => {
    expect(parseTraceparent(`01-${traceId}-${parentId}-03-more`)).toEqual({ traceId, parentId, sampled: true });
  });

  it.each([
    ['nothing', undefined],
    ['an empty one', ''],
    ['the forbidden version', `ff-${traceId}-${parentId}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${parentId}-01`],
    ['a parent id of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['upper case', given.toUpperCase()],
    ['a short trace id', `00-${traceId.slice(1)}-${parentId}-01`],
    ['more than its version has', `${given}-more`],
    ['a space before it', ` ${given}`],
    ['a line break after it', `${given}\n`],
    ['two of them', `${given}, ${given}`],
  ])('is not: %s', (_, text) => {
    expect(parseTraceparent(text)).toBeNull();
  });
});

describe('where nothing is traced', () => {
  const tracing = new PassiveTracing();
  const facts = {
    deliveryId: 'whd_1',
    eventId: 'evt_1',
    endpointId: 'we_1',
    tenantId: 'default',
    number: 1,
    runId: 'run',
    lane: 'local',
  } as const;

  it("the publisher's context is handed on unchanged", async () => {
    expect(await tracing.publish(given, async (traceparent) => traceparent)).toBe(given);
    expect(tracing.startAttempt({ ...facts, traceparent: given }).traceparent).toBe(given);
  });

  it('none is made up', async () => {
    expect(await tracing.publish('nonsense', async (traceparent) => traceparent)).toBeNull();
    expect(await tracing.publish(undefined, async (traceparent) => traceparent)).toBeNull();
    expect(tracing.startAttempt({ ...facts, traceparent: null }).traceparent).toBeNull();
  });
});
