import { pause } from '../../src/pause.js';
import { Child } from '../child.js';
import type { Published, Saturation, Steadiness } from '../load/load.js';
import type { Target } from '../load/generator-process.js';
import type { Receiver } from '../receiver/receiver.js';

const drainMs = 60_000;

/** Producers and receiver around something that takes events over HTTP. */
export class LoadOverHttp {
  private constructor(
    private readonly generator: Child,
    private readonly receiver: Receiver,
  ) {}

  static async start(receiver: Receiver): Promise<LoadOverHttp> {
    return new LoadOverHttp(await Child.start('./load/generator-process.js', [receiver.origin]), receiver);
  }

  get pid(): number {
    return this.generator.pid;
  }

  saturate(target: Target, load: Saturation): Promise<Published> {
    return this.untilArrived(() => this.generator.ask({ kind: 'saturate', target, load }));
  }

  /** As fast as events are accepted, where nothing is delivered. */
  ingest(target: Target, load: Saturation): Promise<Published> {
    return this.generator.ask({ kind: 'saturate', target, load });
  }

  steady(target: Target, load: Steadiness): Promise<Published> {
    return this.untilArrived(() => this.generator.ask({ kind: 'steady', target, load }));
  }

  stop(): Promise<void> {
    return this.generator.stop();
  }

  private async untilArrived(publish: () => Promise<Published>): Promise<Published> {
    const before = await this.receiver.count();
    const published = await publish();
    const deadline = Date.now() + drainMs;
    while ((await this.receiver.count()) - before < published.accepted && Date.now() < deadline) await pause(5);
    return published;
  }
}
