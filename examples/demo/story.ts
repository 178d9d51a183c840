import { setTimeout as sleep } from 'node:timers/promises';
import { type ReceiverStats, startSampleReceiver, type SampleReceiver } from '../receivers/node/receiver.js';
import { DemoError, type Attempt, type Delivery, type PosthornClient } from './posthorn-client.js';

/** Time for each step: enough for a cold start of the engines. */
const stepTimeoutMs = 40_000;
const pollPauseMs = 150;

interface Subject {
  readonly receiver: SampleReceiver;
  /** What the receiver had seen when the endpoint was verified. */
  readonly before: ReceiverStats;
  readonly endpointId: string;
  readonly secret: string;
  readonly type: string;
}

export interface StoryOptions {
  readonly client: PosthornClient;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
}

/** Plays the story once. Whatever happens, it removes what it made. */
export async function playStory(options: StoryOptions): Promise<void> {
  const story = new Story(options);
  try {
    await story.play();
  } finally {
    await story.cleanUp();
  }
}

class Story {
  readonly #client: PosthornClient;
  readonly #signal: AbortSignal;
  readonly #print: (line: string) => void;
  readonly #subjects: Subject[] = [];
  readonly #receivers: SampleReceiver[] = [];
  // Types of this run only, so that endpoints of others, or of an earlier run, don't get its events.
  readonly #run = `demo.run-${Date.now().toString(36)}${Math.floor(Math.random() * 36 ** 4).toString(36)}`;

  constructor({ client, signal, print }: StoryOptions) {
    this.#client = client;
    this.#signal = signal;
    this.#print = print;
  }

  async play(): Promise<void> {
    // A long wait, so that the delivery stays `retrying` until it is redelivered by hand.
    const shop = await this.#subscribe('invoice.paid', [60_000, 60_000]);
    this.#done('set up', `endpoint ${shop.endpointId} wants ${shop.type}, at ${shop.receiver.url}`);
    const first = await this.#deliver(shop);
    await this.#redeliver(shop, first);
    const repaired = await this.#breakAndRepair(shop);

    const flaky = await this.#subscribe('order.shipped', [500, 1_000]);
    const dead = await this.#exhaust(flaky);
    await this.#replay(flaky, dead);

    await this.#timeline('the delivery whose secret was broken', repaired);
    await this.#timeline('the delivery to the endpoint that was down', dead);
  }

  async #deliver(shop: Subject): Promise<string> {
    const id = await this.#publish(shop, { invoice_id: 'inv_1', amount: 1999 });
    const delivery = await this.#untilEnded(id, (d) => d.status === 'succeeded', 'be delivered');
    const stats = seenBy(shop);
    expect(delivery.last_status_code === 200, 'the delivery to record the answer 200', delivery);
    expect(stats.verified === 1 && stats.rejected === 0, 'one request with a valid signature', stats);
    expect(stats.side_effects === 1, 'one side effect', stats);
    this.#done('deliver', `${id} → 200 after ${attempts(delivery)}; signature verified; side effects: 1`);
    return id;
  }

  async #redeliver(shop: Subject, id: string): Promise<void> {
    await this.#client.redeliver(id, 'demo: once more');
    const delivery = await this.#untilEnded(
      id,
      (d) => d.status === 'succeeded' && d.attempt_count >= 2,
      'be delivered a second time',
    );
    const stats = seenBy(shop);
    expect(stats.requests === 2 && stats.verified === 2, 'two requests, both verified', stats);
    expect(stats.side_effects === 1, 'still one side effect', stats);
    expect(Object.keys(stats.deliveries).join() === id, 'both requests to name the same delivery', stats);
    this.#done(
      'redeliver',
      `round ${delivery.round}: two requests in all, both verified, same id; side effects: still 1`,
    );
  }

  async #breakAndRepair(shop: Subject): Promise<string> {
    shop.receiver.setSecrets(['whsec_not_the_secret_that_signs']);
    const id = await this.#publish(shop, { invoice_id: 'inv_2', amount: 4200 });
    const broken = await this.#until(
      id,
      (d) => d.status === 'retrying' && d.last_status_code === 401,
      'be retrying after a 401',
    );
    const rejected = seenBy(shop).rejected;
    expect(rejected >= 1, 'the receiver to have rejected the signature', seenBy(shop));
    this.#done(
      'break the secret',
      `receiver answers 401; ${id} is retrying, next attempt at ${broken.next_attempt_at}`,
    );

    shop.receiver.setSecrets([shop.secret]);
    await this.#client.redeliver(id, 'demo: the secret is right again');
    const repaired = await this.#untilEnded(id, (d) => d.status === 'succeeded', 'be delivered after the repair');
    expect(seenBy(shop).side_effects === 2, 'one side effect of each of the two events', seenBy(shop));
    this.#done('repair it', `redelivered without waiting: ${repaired.last_status_code} after ${attempts(repaired)}`);
    return id;
  }

  async #exhaust(flaky: Subject): Promise<string> {
    flaky.receiver.setMode('down');
    const id = await this.#publish(flaky, { order_id: 'ord_1' });
    const failed = await this.#untilEnded(id, (d) => d.status === 'failed', 'use up its schedule and fail');
    expect(failed.reason === 'attempts_exhausted', 'the reason attempts_exhausted', failed);
    const letters = await this.#client.failedDeliveries(flaky.endpointId);
    expect(letters.length === 1 && letters[0]?.id === id, 'it in the list of failed deliveries', letters);
    this.#done('endpoint down', `${id} failed after ${attempts(failed)} (503): a dead letter, ${failed.reason}`);
    return id;
  }

  async #replay(flaky: Subject, id: string): Promise<void> {
    flaky.receiver.setMode('ok');
    await this.#client.redeliver(id, 'demo: the endpoint is back');
    const delivery = await this.#untilEnded(id, (d) => d.status === 'succeeded', 'be delivered after the outage');
    const stats = seenBy(flaky);
    expect(stats.verified === 1 && stats.side_effects === 1, 'one verified request with one side effect', stats);
    const left = await this.#client.failedDeliveries(flaky.endpointId);
    expect(left.length === 0, 'no failed delivery left', left);
    this.#done(
      'it comes back',
      `redelivered in round ${delivery.round}: ${delivery.last_status_code}; no dead letter left`,
    );
  }

  async cleanUp(): Promise<void> {
    for (const { endpointId } of this.#subjects) {
      await this.#client.deleteEndpoint(endpointId).catch((error: unknown) => {
        this.#print(`  endpoint ${endpointId} could not be deleted: ${String(error)}`);
      });
    }
    await Promise.all(this.#receivers.map((receiver) => receiver.stop()));
  }

  async #subscribe(name: string, retryWaitsMs: number[]): Promise<Subject> {
    const receiver = await startSampleReceiver({ port: 0, host: '127.0.0.1', log: () => {} });
    this.#receivers.push(receiver);
    const type = `${this.#run}.${name}`;
    const { id, secret, status } = await this.#client.createEndpoint({
      url: receiver.url,
      events: [type],
      description: `npm run demo, ${name}`,
      retry_waits_ms: retryWaitsMs,
    });
    receiver.setSecrets([secret]);
    const subject = { receiver, endpointId: id, secret, type, before: receiver.stats() };
    this.#subjects.push(subject);
    if (status !== 'active') await this.#untilVerified(id);
    return { ...subject, before: receiver.stats() };
  }

  /** Nothing real is delivered before the receiver has answered Posthorn's challenge. */
  async #untilVerified(id: string): Promise<void> {
    const deadline = performance.now() + stepTimeoutMs;
    for (;;) {
      const endpoint = await this.#client.endpoint(id);
      if (endpoint.status === 'active') return;
      if (performance.now() > deadline)
        throw new DemoError(`${id} should be verified within ${stepTimeoutMs / 1_000} s, but it is: ${show(endpoint)}`);
      await sleep(pollPauseMs, undefined, { signal: this.#signal });
    }
  }

  async #publish({ type, endpointId }: Subject, data: unknown): Promise<string> {
    const event = await this.#client.publish({ type, data });
    const delivery = event.deliveries.find((one) => one.endpoint_id === endpointId);
    expect(delivery !== undefined && event.deliveries.length === 1, 'one delivery, to the new endpoint', event);
    return delivery.id;
  }

  /** Like `#until`, for a state in which nothing moves any more: the server answers when it is reached. */
  #untilEnded(id: string, isDone: (delivery: Delivery) => boolean, wish: string): Promise<Delivery> {
    return this.#until(id, isDone, wish, '10s');
  }

  async #until(id: string, isDone: (delivery: Delivery) => boolean, wish: string, wait?: string): Promise<Delivery> {
    const deadline = performance.now() + stepTimeoutMs;
    for (;;) {
      const delivery = await this.#client.delivery(id, wait);
      if (isDone(delivery)) return delivery;
      if (performance.now() > deadline) {
        throw new DemoError(`${id} should ${wish} within ${stepTimeoutMs / 1_000} s, but it is: ${show(delivery)}`);
      }
      await sleep(pollPauseMs, undefined, { signal: this.#signal });
    }
  }

  async #timeline(what: string, id: string): Promise<void> {
    this.#print(`\n  Timeline of ${what}, ${id}`);
    for (const attempt of await this.#client.attempts(id)) this.#print(`    ${timelineRow(attempt)}`);
  }

  #done(step: string, seen: string): void {
    this.#print(`✓ ${step.padEnd(16)}  ${seen}`);
  }
}

/** What the receiver has seen since the endpoint was verified. */
function seenBy({ receiver, before }: Subject): ReceiverStats {
  const now = receiver.stats();
  return {
    ...now,
    requests: now.requests - before.requests,
    verified: now.verified - before.verified,
    rejected: now.rejected - before.rejected,
    side_effects: now.side_effects - before.side_effects,
  };
}

function timelineRow(attempt: Attempt): string {
  const answer = attempt.status_code ?? attempt.error_code ?? 'no answer';
  return `${attempt.started_at}  round ${attempt.round}  attempt ${attempt.number}  ${answer}  ${attempt.duration_ms} ms`;
}

function attempts({ attempt_count: count }: Delivery): string {
  return `${count} attempt${count === 1 ? '' : 's'}`;
}

function show(value: unknown): string {
  return JSON.stringify(value);
}

function expect(holds: boolean, expected: string, seen: unknown): asserts holds {
  if (!holds) throw new DemoError(`expected ${expected}, but saw ${show(seen)}`);
}
