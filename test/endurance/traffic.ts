import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../support/posthorn.js';
import type { Estate } from './estate.js';

export interface Accepted {
  readonly deliveryId: string;
  readonly acceptedAt: number;
}

const patienceMs = 90_000;

/** A producer at a steady rate that goes on whatever happens: an event without an answer is published again under its id. */
export class Traffic {
  readonly accepted: Accepted[] = [];
  private readonly stopping = new AbortController();
  private readonly run: Promise<void>;

  constructor(
    private readonly estate: Estate,
    private readonly options: { readonly perSecond: number; readonly most: number },
  ) {
    this.run = this.publishSteadily();
    this.run.catch(() => undefined);
  }

  /** Waits until so many have been accepted. */
  async reaches(count: number, timeoutMs: number): Promise<void> {
    await Promise.race([
      until(`${count} events are accepted`, async () => this.accepted.length >= count, timeoutMs),
      // A producer that gave up tells why.
      this.run.then(() => undefined),
    ]);
  }

  /** Publishes no more, and returns when all that was begun is accepted. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.run;
  }

  private async publishSteadily(): Promise<void> {
    const { perSecond, most } = this.options;
    const startedAt = Date.now();
    const pending: Promise<void>[] = [];
    for (let index = 0; index < most && !this.stopping.signal.aborted; index += 1) {
      pending.push(this.publish());
      const waitMs = startedAt + ((index + 1) * 1_000) / perSecond - Date.now();
      if (waitMs > 0) await delay(waitMs);
    }
    await Promise.all(pending);
  }

  private async publish(): Promise<void> {
    const id = crypto.randomUUID();
    const answer = await until(
      'an API accepts the event',
      async () => {
        const answer = await this.estate.client.post('/v1/events', { id, type: 'endured.sent', data: { id } });
        return answer.status === 202 && answer;
      },
      patienceMs,
    );
    const acceptedAt = Date.now();
    for (const delivery of answer.body.deliveries as { id: string }[])
      this.accepted.push({ deliveryId: delivery.id, acceptedAt });
  }
}
