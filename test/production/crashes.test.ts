import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RecordingReceiver, until } from '../support/posthorn.js';
import { ProductionProcesses, restartTemporal } from '../support/production-processes.js';

let processes: ProductionProcesses;
let receiver: RecordingReceiver;
let traffic: Traffic;

beforeAll(async () => {
  processes = await ProductionProcesses.start({ extra: { POSTHORN_DELIVERY_RETRY_WAITS: '1s,2s,4s,8s' } });
  receiver = await RecordingReceiver.start((_, reply) => {
    // Long enough that there are always requests in flight.
    setTimeout(() => reply.writeHead(200).end('ok'), 20);
  });
  await processes.apis[0]!.client.createEndpoint(`${receiver.url}/a`, ['traffic.*']);
  await processes.apis[0]!.client.createEndpoint(`${receiver.url}/b`, ['traffic.*']);
});
beforeEach(() => {
  traffic = new Traffic();
});
afterEach(() => traffic.stop());
afterAll(async () => {
  await processes.stop();
  await receiver.stop();
});

describe('under traffic nothing is lost', () => {
  it('when one of two workers is killed', async () => {
    await traffic.reaches(40);
    await processes.kill(processes.workers.shift()!);
    await traffic.reaches(120);
    await traffic.isDelivered();
    await processes.startWorker();
  });

  it('when one of two APIs is killed', async () => {
    await traffic.reaches(40);
    await processes.kill(processes.apis.shift()!.process);
    await traffic.reaches(120);
    await traffic.isDelivered();
    await processes.startApi();
  });

  it('when a worker and an API are killed at the same moment, and come back', async () => {
    await traffic.reaches(40);
    await Promise.all([processes.kill(processes.workers.shift()!), processes.kill(processes.apis.shift()!.process)]);
    await traffic.reaches(80);
    await Promise.all([processes.startWorker(), processes.startApi()]);
    await traffic.reaches(120);
    await traffic.isDelivered();
  });

  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'when the Temporal server is ended by %s, and comes back',
    async (signal) => {
      await traffic.reaches(40);
      const back = restartTemporal(signal);
      await traffic.reaches(80);
      await back;
      await traffic.reaches(120);
      await traffic.isDelivered();
    },
  );
});

/** A producer that goes on whatever happens: an event without an answer is published again under its id, at the other API. */
class Traffic {
  private readonly deliveries: string[] = [];
  private published = 0;
  private stopped = false;
  private readonly run = Promise.all(Array.from({ length: 2 }, () => this.publishOnAndOn()));

  /** Waits until so many events have been accepted. */
  async reaches(count: number): Promise<void> {
    await until(`${count} events are accepted`, async () => this.published >= count, 60_000);
  }

  /** Ends the traffic; every delivery of every accepted event arrives. */
  async isDelivered(): Promise<void> {
    await this.stop();
    expect(this.deliveries.length).toBe(this.published * 2);
    const { client } = processes.apis[0]!;
    const open = new Set(this.deliveries);
    await until(
      'every delivery has succeeded',
      async () => {
        for (const id of open) {
          const { status } = await client.delivery(id);
          if (status === 'succeeded') open.delete(id);
          else if (status !== 'pending' && status !== 'retrying') throw new Error(`${id} is ${status}`);
        }
        return open.size === 0;
      },
      300_000,
    ).catch((error: unknown) => {
      throw new Error(`${open.size} of ${this.deliveries.length} are open, such as ${[...open][0]}`, { cause: error });
    });
    const received = new Map<string, number>();
    for (const { deliveryId } of receiver.requests) received.set(deliveryId, (received.get(deliveryId) ?? 0) + 1);
    expect(this.deliveries.filter((id) => !received.has(id))).toEqual([]);
    // Repeated only where an answer was not yet recorded: what was in flight, not what was done.
    const repeated = this.deliveries.filter((id) => received.get(id)! > 1);
    expect(repeated.length).toBeLessThan(40);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.run;
  }

  private async publishOnAndOn(): Promise<void> {
    while (!this.stopped) {
      const id = crypto.randomUUID();
      const accepted = await until(
        'an API accepts the event',
        async () => {
          const { apis } = processes;
          const { client } = apis[Math.floor(Math.random() * apis.length)]!;
          const answer = await client.post('/v1/events', { id, type: 'traffic.flows', data: { id } });
          return answer.status === 202 && answer;
        },
        60_000,
      );
      this.published += 1;
      for (const delivery of accepted.body.deliveries as { id: string }[]) this.deliveries.push(delivery.id);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
