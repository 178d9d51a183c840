import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DemoError } from '../demo/posthorn-client.js';
import { type SampleReceiver, startSampleReceiver } from '../receivers/node/receiver.js';
import type { IncidentApi } from './incident-api.js';
import { Traffic } from './traffic.js';

const eventType = 'order.created';
const eventsPerSecond = 10;
const recoverPerSecond = 100;
/** How long the traffic goes on before the outage, and while the endpoint is disabled. */
const calmMs = 2_000;
const missedMs = 4_000;
const stepTimeoutMs = 120_000;

export interface IncidentOptions {
  readonly api: IncidentApi;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
}

/** Plays the incident. Throws where something isn't as it should be, the counts above all. */
export async function playIncident({ api, signal, print }: IncidentOptions): Promise<void> {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const receiver = await startSampleReceiver({ port: 0, host: '127.0.0.1', secret, log: () => {} });
  const traffic: Traffic[] = [];
  try {
    await new Incident(api, signal, print, receiver, secret, traffic).play();
  } finally {
    for (const one of traffic) await one.stop().catch(() => undefined);
    await receiver.stop();
  }
}

class Incident {
  constructor(
    private readonly api: IncidentApi,
    private readonly signal: AbortSignal,
    private readonly print: (line: string) => void,
    private readonly receiver: SampleReceiver,
    private readonly secret: string,
    private readonly running: Traffic[],
  ) {}

  async play(): Promise<void> {
    const { api, receiver } = this;
    const { id } = await api.createEndpoint({
      url: receiver.url,
      events: ['order.*'],
      description: 'npm run demo:incident',
      secret: this.secret,
      // Hours, shortened to a second.
      retry_waits_ms: [300, 700],
    });
    await this.#until('the endpoint is verified', async () => (await api.endpoint(id)).status === 'active');
    this.#done('set up', `endpoint ${id} wants order.*, at ${receiver.url}`);

    const traffic = new Traffic(api, eventType, eventsPerSecond);
    this.running.push(traffic);
    await this.#wait(calmMs);
    await this.#until('what was published has arrived', async () => this.#received() >= eventsPerSecond);
    this.#done('traffic', `${eventsPerSecond} events a second; ${this.#received()} have arrived`);

    const since = new Date().toISOString();
    receiver.setMode('down');
    this.#done('outage', `from ${since} on the endpoint answers 503; the traffic goes on`);
    await this.#until('Posthorn has disabled the endpoint', async () => {
      const { status } = await api.endpoint(id);
      const [failed, held] = await Promise.all([api.countDeliveries(id, 'failed'), api.countDeliveries(id, 'held')]);
      this.#progress(
        `published ${traffic.published} · received ${this.#received()} · given up ${failed} · held ${held} · endpoint ${status}`,
      );
      await this.#wait(1_000);
      return status === 'disabled';
    });
    await this.#until('what waited is given up', async () => (await api.countDeliveries(id, 'held')) === 0);
    this.#done('disabled', `no success for so long: ${await api.countDeliveries(id, 'failed')} dead letters`);
    const before = traffic.published;
    await this.#wait(missedMs);
    this.#done('missed', `${traffic.published - before} more events, for which no delivery was made`);

    receiver.setMode('ok');
    await api.enable(id);
    this.#done('it comes back', 'the endpoint answers again, and is enabled; what is published now is delivered');
    const { total } = await api.countRecoverable(id, since);
    this.#done('dry run', `recover since ${since} would bring ${total}`);
    await this.#recover(id, since);
    await traffic.stop();
    await this.#compare(id, traffic.published);
  }

  async #recover(endpointId: string, since: string): Promise<void> {
    const replay = await this.api.recover(endpointId, {
      since,
      rate_per_second: recoverPerSecond,
      reason: 'demo: it is back',
    });
    this.#done('recover', `one request: ${replay.id}, ${replay.progress.total} in its set`);
    await this.#until('all of them are at their end', async () => {
      const { status, progress, outcomes } = await this.api.replay(replay.id);
      this.#progress(
        `started ${progress.started} of ${progress.total} · succeeded ${outcomes.succeeded} · on their way ${outcomes.in_progress} · skipped ${progress.skipped}`,
      );
      await this.#wait(1_000);
      return status === 'completed' && outcomes.in_progress === 0;
    });
    const { outcomes } = await this.api.replay(replay.id);
    if (outcomes.failed > 0) throw new DemoError(`${outcomes.failed} of the replay failed again`);
    this.#done('recovered', `${outcomes.succeeded} were delivered`);
  }

  /** The receiver's own count, Posthorn's feed, and what the publisher counted: three witnesses. */
  async #compare(endpointId: string, published: number): Promise<void> {
    await this.#until('the last ones have arrived', async () => this.#received() >= published).catch(() => undefined);
    const events = await this.api.followAll(endpointId);
    const delivered = events.filter(({ delivery }) => delivery?.status === 'succeeded').length;
    const received = this.#received();
    this.print('');
    this.print(`  published, as the publisher counted             ${published}`);
    this.print(`  GET /v1/events?after=, followed to its end      ${events.length}`);
    this.print(`    of these delivered to the endpoint            ${delivered}`);
    this.print(`  received, each once, as the receiver counted    ${received}`);
    if (new Set([published, events.length, delivered, received]).size !== 1)
      throw new DemoError('the counts differ: something is missing, or came twice');
  }

  #received(): number {
    return this.receiver.stats().side_effects;
  }

  async #until(wish: string, probe: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + stepTimeoutMs;
    while (!(await probe())) {
      if (performance.now() > deadline) throw new DemoError(`waited ${stepTimeoutMs / 1_000} s in vain until ${wish}`);
      await this.#wait(100);
    }
  }

  async #wait(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.signal });
  }

  #done(step: string, seen: string): void {
    this.print(`✓ ${step.padEnd(14)} ${seen}`);
  }

  #progress(line: string): void {
    this.print(`    ${line}`);
  }
}
