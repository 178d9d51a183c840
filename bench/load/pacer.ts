import { setTimeout as delay } from 'node:timers/promises';
import { nowUs } from '../measure/clock.js';
import type { Published, Saturation, Steadiness } from './load.js';

/** Publishes `count` events, numbered from `first`; answers how many were accepted. */
export type Publish = (first: number, count: number) => Promise<number>;

/** Numbers go on over spells, so that the receiver can tell a repetition from a new event. */
let nextNumber = 0;

/** Of a process that publishes beside the generator: its numbers are its own. */
export function numberFrom(first: number): void {
  nextNumber = first;
}

/** How many events of the spell have come to their end; whoever waits for more is woken by the news, and nobody polls. */
export class Progress {
  #arrived = 0;
  #waiting: (() => void)[] = [];

  get arrived(): number {
    return this.#arrived;
  }

  reached(arrived: number): void {
    if (arrived === this.#arrived) return;
    this.#arrived = arrived;
    this.wake();
  }

  wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  news(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

export async function saturate(load: Saturation, publish: Publish, progress: Progress): Promise<Published> {
  const startUs = nowUs();
  const windowFromUs = startUs + load.rampMs * 1e3;
  const windowToUs = startUs + load.ms * 1e3;
  const end = setTimeout(() => progress.wake(), load.ms + 1);
  let [sent, accepted, acceptedInWindow, refused] = [0, 0, 0, 0];
  await Promise.all(
    Array.from({ length: load.width }, async () => {
      for (;;) {
        while (sent - refused - progress.arrived >= load.outstanding && nowUs() < windowToUs) await progress.news();
        if (nowUs() >= windowToUs) return;
        const first = nextNumber;
        nextNumber += load.batch;
        sent += load.batch;
        const taken = await publish(first, load.batch);
        accepted += taken;
        refused += load.batch - taken;
        const atUs = nowUs();
        if (atUs >= windowFromUs && atUs < windowToUs) acceptedInWindow += taken;
      }
    }),
  );
  clearTimeout(end);
  return { windowFromUs, windowToUs, accepted, acceptedInWindow, refused, latenciesOfAll: false };
}

export async function publishSteadily(load: Steadiness, publish: Publish): Promise<Published> {
  const startUs = nowUs();
  const count = Math.round((load.ms / 1_000) * load.perSecond);
  const pending: Promise<number>[] = [];
  for (let index = 0; index < count; index += 1) {
    const dueUs = startUs + (index * 1e6) / load.perSecond;
    const waitMs = (dueUs - nowUs()) / 1e3;
    if (waitMs > 0) await delay(waitMs);
    pending.push(publish(nextNumber, 1));
    nextNumber += 1;
  }
  const accepted = (await Promise.all(pending)).reduce((sum, taken) => sum + taken, 0);
  return {
    windowFromUs: startUs,
    windowToUs: nowUs(),
    accepted,
    acceptedInWindow: accepted,
    refused: count - accepted,
    latenciesOfAll: true,
  };
}
