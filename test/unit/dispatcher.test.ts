import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/telemetry/logger.js';
import { Dispatcher, dispatchQueueLimit } from '../../src/temporal/dispatcher.js';
import type { DeliveryStart, TemporalGateway } from '../../src/temporal/gateway.js';

/** A gateway whose starts end when the test says so. */
function heldGateway() {
  const order: string[] = [];
  const open = new Map<string, { succeed: () => void; fail: () => void }>();
  const startDelivery = ({ id }: DeliveryStart) =>
    new Promise<string>((resolve, reject) => {
      order.push(id);
      open.set(id, { succeed: () => resolve('started'), fail: () => reject(new Error('Temporal is away')) });
    });
  const settle = async (how: 'succeed' | 'fail', ids = [...open.keys()]): Promise<void> => {
    for (const id of ids) {
      open.get(id)?.[how]();
      open.delete(id);
    }
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { gateway: { startDelivery } as unknown as TemporalGateway, order, open, settle };
}

class CountingDispatcher extends Dispatcher {
  left = 0;
  protected override leftToSweeper(jobs: number): void {
    this.left += jobs;
  }
}

function newDispatcher() {
  const held = heldGateway();
  let now = 0;
  const log = createLogger('silent', 'stderr');
  const dispatcher = new CountingDispatcher(
    held.gateway,
    async () => {},
    log,
    () => now,
  );
  const submit = (endpointId: string, id: string) =>
    dispatcher.submit({
      kind: 'start',
      delivery: { id, endpointId, tenantId: 't', eventId: 'e', type: 'x.y' },
    });
  return { ...held, dispatcher, submit, pass: (ms: number) => (now += ms) };
}

const ids = (endpoint: string, count: number) => Array.from({ length: count }, (_, n) => `${endpoint}-${n}`);

describe('the dispatcher', () => {
  it('lets a quiet endpoint through a burst of another one at once', () => {
    const { submit, order, dispatcher } = newDispatcher();
    for (const id of ids('busy', 250)) submit('busy', id);
    expect(order).toEqual(ids('busy', 4));
    submit('quiet', 'quiet-0');
    expect(order.at(-1)).toBe('quiet-0');
    expect(dispatcher.backlog).toBe(251);
  });

  it('starts in turns where more endpoints wait than it has hands', async () => {
    const { submit, order, settle } = newDispatcher();
    for (const endpoint of ['a', 'b', 'c', 'd']) for (const id of ids(endpoint, 4)) submit(endpoint, id);
    expect(order).toHaveLength(16);
    for (const endpoint of ['e', 'f']) for (const id of ids(endpoint, 3)) submit(endpoint, id);
    await settle('succeed', ids('a', 4));
    expect(order.slice(16)).toEqual(['e-0', 'f-0', 'e-1', 'f-1']);
  });

  it('starts all there is in the end, in order for each endpoint', async () => {
    const { submit, order, open, settle, dispatcher } = newDispatcher();
    for (const id of ids('a', 100)) submit('a', id);
    for (const id of ids('b', 20)) submit('b', id);
    while (open.size > 0) await settle('succeed');
    expect(order.filter((id) => id.startsWith('a'))).toEqual(ids('a', 100));
    expect(order.filter((id) => id.startsWith('b'))).toEqual(ids('b', 20));
    expect(dispatcher.backlog).toBe(0);
  });

  it('leaves the newest of the longest queue to the sweeper when it is full', async () => {
    const { submit, order, open, settle } = newDispatcher();
    const burst = ids('busy', dispatchQueueLimit + 4);
    for (const id of burst) expect(submit('busy', id)).toBe(true);
    expect(submit('busy', 'busy-late')).toBe(false);
    // It has no hand free for itself either: four of its own hang.
    for (const id of ids('quiet', 10)) expect(submit('quiet', id)).toBe(true);
    while (open.size > 0) await settle('succeed');
    expect(order.filter((id) => id.startsWith('quiet'))).toEqual(ids('quiet', 10));
    expect(order).not.toContain(burst.at(-1));
    expect(order).toContain(burst.at(-7));
  });

  it('takes no job from one quiet endpoint for another one', () => {
    const { submit } = newDispatcher();
    for (let n = 0; n < dispatchQueueLimit + 16; n += 1) expect(submit(`e${n}`, `${n}`)).toBe(true);
    expect(submit('late', 'late')).toBe(false);
  });

  it('leaves all to the sweeper for a second after three failures in a row', async () => {
    const { submit, order, settle, dispatcher, pass } = newDispatcher();
    for (const id of ids('a', 40)) submit('a', id);
    await settle('fail', ids('a', 3));
    expect(submit('b', 'b-0')).toBe(false);
    await settle('succeed');
    expect(dispatcher.backlog).toBe(0);
    // All but the one that was on its way and arrived.
    expect(dispatcher.left).toBe(40 - 1 + 1);
    const started = order.length;
    pass(1_001);
    expect(submit('b', 'b-1')).toBe(true);
    expect(order.slice(started)).toEqual(['b-1']);
  });

  it('finishes what is at work when it stops', async () => {
    const { submit, order, open, settle, dispatcher } = newDispatcher();
    for (const id of ids('a', 20)) submit('a', id);
    const stopping = dispatcher.stop();
    expect(submit('a', 'late')).toBe(false);
    expect(open.size).toBe(4);
    await settle('succeed');
    await stopping;
    expect(order).toEqual(ids('a', 4));
    expect(dispatcher.left).toBe(17);
  });
});
